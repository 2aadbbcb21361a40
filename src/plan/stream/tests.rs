//! Graphs of queries as text.

//! All integration tests in one binary: linking DataFusion once is what takes the time.

mod architecture;
mod expressions;
mod reference;

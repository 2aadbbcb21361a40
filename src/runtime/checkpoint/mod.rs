//! Checkpoints on disk: segments of state, the manifest that makes them one cut, and the folder of a job.

//! The plugin as a framework meets it, on XLA's library, in the process of the test.

mod interposer;
mod kernels;
mod library;

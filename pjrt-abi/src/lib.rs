//! The PJRT C interface as plain data.

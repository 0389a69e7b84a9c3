//! stitch

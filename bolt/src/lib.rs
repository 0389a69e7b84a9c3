//! bolt

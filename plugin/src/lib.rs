//! The act PJRT plugin.

//! isa/hlo

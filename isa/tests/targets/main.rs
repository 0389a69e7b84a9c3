//! Every instruction of the shipped targets against a statement of its meaning that was made without the description:
//! values worked out by hand from the vendor's definition, and the processor's own instruction where there is one.

mod bench;
mod native;
mod samples;
mod x86;

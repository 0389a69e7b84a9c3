//! Every instruction of the shipped targets against a statement of its meaning that was made without the description:
//! values worked out by hand from the vendor's definition, and the processor's own instruction where there is one.

#[cfg(target_arch = "x86_64")]
mod amx;
mod amx_golden;
mod bench;
#[cfg(target_arch = "x86_64")]
mod differential;
mod encodings;
mod eva;
mod feather;
mod gemmini;
mod golden;
mod h_qkv;
#[cfg(target_arch = "x86_64")]
mod native;
mod samples;
mod stage;
mod tpu_v1;
mod trainium;
#[cfg(target_arch = "x86_64")]
mod x86;

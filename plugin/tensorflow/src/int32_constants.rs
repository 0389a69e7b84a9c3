//! The kernel that makes an int32 constant of an eager program. TensorFlow keeps int32 values of every device in the
//! host's memory, and says so of the kernels of its own devices; of those that it makes for ours it does not, and the
//! constant would be read from where nothing was written.

use crate::kernel_registration::{Registration, register};
use crate::list_flow::pass_on;
use crate::release::Supported;
use crate::tensorflow::INT32;

/// Registers the kernel.
pub(crate) fn register_constants(tensorflow: &Supported) {
    let registration = Registration {
        operator: c"_EagerConst",
        in_host_memory: &[c"input", c"output"],
        types: Some((c"T", INT32)),
        create: None,
        compute: pass_on,
        delete: None,
    };
    register(&tensorflow.c, &registration);
}

//! The kernel that makes an int32 constant of an eager program. TensorFlow keeps int32 values of every device in the
//! host's memory, and says so of the kernels of its own devices; of those that it makes for ours it does not, and the
//! constant would be read from where nothing was written.

use std::ffi::c_void;

use crate::DEVICE_TYPE;
use crate::release::Supported;
use crate::tensorflow::{INT32, KernelContext, code, message_of};
use crate::{contained, release};

/// Above the kernels that TensorFlow makes for the device.
const PRIORITY: i32 = 1;

/// Registers the kernel.
pub(crate) fn register(tensorflow: &Supported) {
    let c = &tensorflow.c;
    // SAFETY: all strings are null-terminated; the builder is taken over by its registration.
    let failure = unsafe {
        let status = (c.new_status)();
        let builder =
            (c.new_kernel_builder)(c"_EagerConst".as_ptr(), DEVICE_TYPE.as_ptr(), None, Some(pass_on), None);
        (c.type_constraint)(builder, c"T".as_ptr(), INT32, status);
        (c.host_memory)(builder, c"input".as_ptr());
        (c.host_memory)(builder, c"output".as_ptr());
        (c.kernel_priority)(builder, PRIORITY);
        (c.register_kernel)(c"ActInt32Constant".as_ptr(), builder, status);
        let failure = message_of(c, status);
        (c.delete_status)(status);
        failure
    };
    if let Some(failure) = failure {
        eprintln!("act: int32 constants cannot be made on ACT devices: {failure}");
    }
}

/// Gives the input on as the output.
unsafe extern "C" fn pass_on(_kernel: *mut c_void, context: *mut KernelContext) {
    contained("_EagerConst", (), || {
        let Some(tensorflow) = release::supported() else { return };
        let c = &tensorflow.c;
        // SAFETY: TensorFlow's context of a kernel with one input and one output; the tensor and the status are freed
        // once each.
        unsafe {
            let status = (c.new_status)();
            let mut tensor = std::ptr::null_mut();
            (c.get_input)(context, 0, &raw mut tensor, status);
            if (c.get_code)(status) == code::OK {
                (c.set_output)(context, 0, tensor, status);
            }
            if (c.get_code)(status) != code::OK {
                (c.fail_kernel)(context, status);
            }
            if !tensor.is_null() {
                (c.delete_tensor)(tensor);
            }
            (c.delete_status)(status);
        }
    });
}

//! Lists that go through control flow. The operators of lists run on the host and their lists lie in its memory
//! (`host_operators.rs`); TensorFlow's own kernels for branches and loops would want them in the device's, and a loop
//! would have each whole list copied there and back in every round. The kernels here hand a list on where it is. Where a
//! list does get to the device's memory, at the border of a function that is called, TensorFlow copies its elements.
//!
//! They serve every value of the type `variant`, as TensorFlow cannot tell one from the other.

use std::ffi::{CStr, c_int, c_void};

use crate::release::Supported;
use crate::tensorflow::{KernelContext, Status, TensorFlow, VARIANT, code};
use crate::{contained, kernel_registration, release};

/// The operators with one input and one output, which get the same value.
const PASSED_ON: [(&CStr, [&CStr; 2]); 4] = [
    (c"Enter", [c"data", c"output"]),
    (c"Exit", [c"data", c"output"]),
    (c"Identity", [c"input", c"output"]),
    (c"NextIteration", [c"data", c"output"]),
];

/// Registers the kernels.
pub(crate) fn register(tensorflow: &Supported) {
    use kernel_registration::{Compute, Registration, register};
    let registered = |operator, compute: Compute, in_host_memory: &[&CStr]| {
        let types = Some((c"T", VARIANT));
        register(
            &tensorflow.c,
            &Registration { operator, in_host_memory, types, create: None, compute, delete: None },
        );
    };
    for (operator, in_host_memory) in &PASSED_ON {
        registered(operator, pass_on, in_host_memory);
    }
    registered(c"Switch", branch, &[c"data", c"pred", c"output_false", c"output_true"]);
    registered(c"Merge", merge, &[c"inputs", c"output", c"value_index"]);
}

/// Gives an input on as an output.
///
/// # Safety
/// `context` and `status` must be live and TensorFlow's.
unsafe fn hand_on(
    c: &TensorFlow,
    context: *mut KernelContext,
    input: c_int,
    output: c_int,
    status: *mut Status,
) {
    let mut tensor = std::ptr::null_mut();
    // SAFETY: the caller's promise; the tensor is freed once.
    unsafe {
        (c.get_input)(context, input, &raw mut tensor, status);
        if (c.get_code)(status) == code::OK {
            (c.set_output)(context, output, tensor, status);
        }
        if !tensor.is_null() {
            (c.delete_tensor)(tensor);
        }
    }
}

/// Runs a kernel's work, and fails the kernel where that went wrong.
///
/// # Safety
/// `context` must be TensorFlow's, live during the call.
unsafe fn with_status(context: *mut KernelContext, work: impl FnOnce(&TensorFlow, *mut Status)) {
    let Some(tensorflow) = release::supported() else { return };
    let c = &tensorflow.c;
    // SAFETY: the caller's promise; the status is freed once.
    unsafe {
        let status = (c.new_status)();
        work(c, status);
        if (c.get_code)(status) != code::OK {
            (c.fail_kernel)(context, status);
        }
        (c.delete_status)(status);
    }
}

/// The kernel of an operator that gives its input on as its output.
pub(crate) unsafe extern "C" fn pass_on(_kernel: *mut c_void, context: *mut KernelContext) {
    contained("a kernel that passes its input on", (), || {
        // SAFETY: TensorFlow's context of a kernel with one input and one output.
        unsafe { with_status(context, |c, status| hand_on(c, context, 0, 0, status)) };
    });
}

/// `Switch`: the value goes to the output that the condition names; the other one stays empty, which tells TensorFlow
/// that what follows there is not run.
unsafe extern "C" fn branch(_kernel: *mut c_void, context: *mut KernelContext) {
    contained("Switch", (), || {
        // SAFETY: TensorFlow's context of a kernel with a value and a condition, which is a scalar in the host's memory.
        unsafe {
            with_status(context, |c, status| {
                let mut condition = std::ptr::null_mut();
                (c.get_input)(context, 1, &raw mut condition, status);
                if (c.get_code)(status) != code::OK {
                    return;
                }
                let holds = match (c.tensor_size)(condition) {
                    1 => Some((c.tensor_data)(condition).cast::<u8>().read() != 0),
                    _ => None,
                };
                (c.delete_tensor)(condition);
                match holds {
                    Some(holds) => hand_on(c, context, 0, c_int::from(holds), status),
                    None => {
                        let message = c"The second input must be a scalar";
                        (c.set_status)(status, code::INVALID_ARGUMENT, message.as_ptr());
                    }
                }
            });
        }
    });
}

/// `Merge`: the one input that is there goes on. TensorFlow's C interface cannot ask which that is, so TensorFlow's own
/// kernel does the work.
unsafe extern "C" fn merge(_kernel: *mut c_void, context: *mut KernelContext) {
    contained("Merge", (), || {
        if let Some(tensorflow) = release::supported() {
            // SAFETY: TensorFlow's context of a node of this operator.
            unsafe { tensorflow.cxx.merge(context) };
        }
    });
}

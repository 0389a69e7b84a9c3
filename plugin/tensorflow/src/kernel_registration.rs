//! Registering a kernel for the device, in place of the one that TensorFlow makes for it.

use std::ffi::{CStr, CString, c_int};

use crate::DEVICE_TYPE;
use crate::tensorflow::{Create, Delete, KernelContext, TensorFlow, message_of};

/// What a kernel does.
pub(crate) type Compute = unsafe extern "C" fn(kernel: *mut std::ffi::c_void, context: *mut KernelContext);

/// Above the kernels that TensorFlow makes for the device.
const PRIORITY: i32 = 1;

/// A kernel.
pub(crate) struct Registration<'a> {
    pub(crate) operator: &'a CStr,
    /// Arguments and results that the kernel wants in the host's memory.
    pub(crate) in_host_memory: &'a [&'a CStr],
    /// The attribute that must have a type (`TF_DataType`), where the kernel is not for all.
    pub(crate) types: Option<(&'a CStr, c_int)>,
    pub(crate) create: Option<Create>,
    pub(crate) compute: Compute,
    pub(crate) delete: Option<Delete>,
}

/// Registers a kernel; where TensorFlow refuses it, that is printed.
pub(crate) fn register(c: &TensorFlow, registration: &Registration<'_>) {
    let operator = registration.operator.to_string_lossy();
    // Operators' names have no null bytes.
    let name = CString::new(format!("Act{operator}")).unwrap_or_default();
    // SAFETY: all strings are null-terminated; the builder is taken over by its registration.
    let failure = unsafe {
        let status = (c.new_status)();
        let builder = (c.new_kernel_builder)(
            registration.operator.as_ptr(),
            DEVICE_TYPE.as_ptr(),
            registration.create,
            Some(registration.compute),
            registration.delete,
        );
        for argument in registration.in_host_memory {
            (c.host_memory)(builder, argument.as_ptr());
        }
        if let Some((attribute, value)) = registration.types {
            (c.type_constraint)(builder, attribute.as_ptr(), value, status);
        }
        (c.kernel_priority)(builder, PRIORITY);
        (c.register_kernel)(name.as_ptr(), builder, status);
        let failure = message_of(c, status);
        (c.delete_status)(status);
        failure
    };
    if let Some(failure) = failure {
        eprintln!("act: {operator} cannot run as it should on ACT devices: {failure}");
    }
}

//! Kernels of the device that give their work to TensorFlow's kernels for CPU, through its eager interface: those of the
//! operators in [`OPERATORS`]. All tensors that go in and come out are declared to be in the host's memory. Knows nothing
//! of what an operator computes.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::host_operators::{OPERATORS, Operator};
use crate::kernel_registration::Registration;
use crate::node_definition::NodeDefinition;
use crate::release::Supported;
use crate::tensorflow::{
    EagerContext, EagerOp, KernelConstruction, KernelContext, Status, Tensor, TensorFlow, TensorHandle, code,
};
use crate::{contained, kernel_registration, release};

/// A `ConfigProto` with `device_count { key: "ACT" value: 0 }`: the operators here run on CPU only.
const CPU_ONLY: &[u8] = b"\x0a\x07\x0a\x03ACT\x10\x00";

/// Registers the kernels.
pub(crate) fn register(tensorflow: &Supported) {
    for operator in OPERATORS {
        let registration = Registration {
            operator: operator.name,
            in_host_memory: operator.in_host_memory,
            types: operator.only,
            create: Some(create),
            compute,
            delete: Some(delete),
        };
        kernel_registration::register(&tensorflow.c, &registration);
    }
}

/// What a kernel keeps.
struct Kernel {
    node: NodeDefinition,
    operator: &'static Operator,
}

impl Kernel {
    /// `None` where there is no kernel here for the node's operator.
    fn new(mut node: NodeDefinition) -> Option<Kernel> {
        let operator = OPERATORS.iter().find(|known| *known.name == *node.operator)?;
        if operator.has_state {
            node.attributes.push((c"_act_kernel".to_owned(), own_attribute()));
        }
        Some(Kernel { node, operator })
    }
}

/// An attribute's value that no other kernel has. Operators with equal attributes share one kernel in an eager context,
/// and with it the state of a random generator.
fn own_attribute() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    // `AttrValue { s: number }`; the number has at most 20 digits.
    [&[0x12, number.len() as u8], number.as_bytes()].concat()
}

unsafe extern "C" fn create(construction: *mut KernelConstruction) -> *mut c_void {
    contained("a kernel on the host", std::ptr::null_mut(), || {
        let Some(tensorflow) = release::supported() else { return std::ptr::null_mut() };
        let c = &tensorflow.c;
        // SAFETY: TensorFlow's construction, live during the call; the buffer says how many bytes it has.
        unsafe {
            let status = (c.new_status)();
            let buffer = (c.node_definition)(construction, status);
            let node = if buffer.is_null() {
                None
            } else {
                let bytes = std::slice::from_raw_parts((*buffer).data.cast::<u8>(), (*buffer).length);
                let node = NodeDefinition::read(bytes);
                (c.delete_buffer)(buffer);
                node
            };
            let node = node.and_then(Kernel::new);
            if node.is_none() {
                (c.set_status)(status, code::INTERNAL, c"act: a node that cannot be read".as_ptr());
                (c.fail_construction)(construction, status);
            }
            (c.delete_status)(status);
            node.map_or(std::ptr::null_mut(), |node| Box::into_raw(Box::new(node)).cast())
        }
    })
}

unsafe extern "C" fn delete(kernel: *mut c_void) {
    if !kernel.is_null() {
        // SAFETY: `create` made it from such a box, and TensorFlow deletes a kernel once.
        drop(unsafe { Box::from_raw(kernel.cast::<Kernel>()) });
    }
}

unsafe extern "C" fn compute(kernel: *mut c_void, context: *mut KernelContext) {
    contained("a kernel on the host", (), || {
        let Some(tensorflow) = release::supported() else { return };
        let c = &tensorflow.c;
        // SAFETY: `create` made the kernel; the context is TensorFlow's, live during the call.
        unsafe {
            let status = (c.new_status)();
            match kernel.cast::<Kernel>().as_ref() {
                Some(kernel) => run(c, kernel, context, status),
                None => (c.set_status)(status, code::INTERNAL, c"act: a kernel that was not made".as_ptr()),
            }
            if (c.get_code)(status) != code::OK {
                (c.fail_kernel)(context, status);
            }
            (c.delete_status)(status);
        }
    });
}

/// The eager context in which the operators run; `None` where TensorFlow makes none.
fn eager_context(c: &TensorFlow) -> Option<*mut EagerContext> {
    struct Shared(*mut EagerContext);
    // SAFETY: a context may be used by any thread.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}
    static CONTEXT: OnceLock<Shared> = OnceLock::new();
    let context = CONTEXT.get_or_init(|| {
        // SAFETY: options and status are freed once; the context lives for the rest of the process.
        unsafe {
            let (status, options) = ((c.new_status)(), (c.new_eager_options)());
            (c.set_eager_config)(options, CPU_ONLY.as_ptr().cast(), CPU_ONLY.len(), status);
            let context = (c.new_eager_context)(options, status);
            (c.delete_eager_options)(options);
            (c.delete_status)(status);
            Shared(context)
        }
    });
    (!context.0.is_null()).then_some(context.0)
}

/// Runs a kernel's operator on CPU; what goes wrong is left in `status`.
///
/// # Safety
/// `context` and `status` must be live and TensorFlow's.
unsafe fn run(c: &TensorFlow, kernel: &Kernel, context: *mut KernelContext, status: *mut Status) {
    // SAFETY: the caller's promise; `Operation` and `Handles` free what they hold.
    unsafe {
        let Some(eager) = eager_context(c) else {
            (c.set_status)(status, code::INTERNAL, c"act: no context for operators on CPU".as_ptr());
            return;
        };
        let op = Operation { c, op: (c.new_op)(eager, kernel.node.operator.as_ptr(), status) };
        let ok = || (c.get_code)(status) == code::OK;
        if op.op.is_null() || !ok() {
            return;
        }
        (c.set_op_device)(op.op, c"/device:CPU:0".as_ptr(), status);
        for (name, value) in &kernel.node.attributes {
            (c.set_op_attribute)(op.op, name.as_ptr(), value.as_ptr().cast(), value.len(), status);
        }
        let mut inputs = Handles { c, handles: Vec::new() };
        for at in 0..(c.input_count)(context) {
            let mut tensor = std::ptr::null_mut();
            (c.get_input)(context, at, &raw mut tensor, status);
            if !ok() {
                return;
            }
            inputs.handles.push((c.new_handle)(tensor, status));
            (c.delete_tensor)(tensor);
        }
        if !ok() {
            return;
        }
        if kernel.operator.variadic {
            let count = inputs.handles.len() as c_int;
            (c.add_op_input_list)(op.op, inputs.handles.as_mut_ptr(), count, status);
        } else {
            inputs.handles.iter().for_each(|&input| (c.add_op_input)(op.op, input, status));
        }
        if !ok() {
            return;
        }
        let mut count = (c.output_count)(context);
        let mut outputs = Handles { c, handles: vec![std::ptr::null_mut(); count.max(0) as usize] };
        (c.execute)(op.op, outputs.handles.as_mut_ptr(), &raw mut count, status);
        for (at, &output) in outputs.handles.iter().enumerate() {
            if !ok() {
                return;
            }
            let tensor: *mut Tensor = (c.resolve_handle)(output, status);
            if ok() {
                (c.set_output)(context, at as c_int, tensor, status);
                (c.delete_tensor)(tensor);
            }
        }
    }
}

/// An operation that is deleted in the end.
struct Operation<'a> {
    c: &'a TensorFlow,
    op: *mut EagerOp,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if !self.op.is_null() {
            // SAFETY: made by `TFE_NewOp`, and deleted here only.
            unsafe { (self.c.delete_op)(self.op) };
        }
    }
}

/// Handles that are deleted in the end; null ones are not.
struct Handles<'a> {
    c: &'a TensorFlow,
    handles: Vec<*mut TensorHandle>,
}

impl Drop for Handles<'_> {
    fn drop(&mut self) {
        for &handle in self.handles.iter().filter(|handle| !handle.is_null()) {
            // SAFETY: made by TensorFlow for us, and deleted here only.
            unsafe { (self.c.delete_handle)(handle) };
        }
    }
}

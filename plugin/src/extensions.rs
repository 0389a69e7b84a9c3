//! The extension chain that frameworks see: copies of those nodes of the inner library's chain that we mean
//! to offer, and our own. What we do not know, or use ourselves, is left out.

use pjrt_abi::layout::CStruct;
use pjrt_abi::{ApiRef, ExtensionBase, extension_type};

use crate::profiler;

/// Extensions handed on. Their functions take objects of the inner library, which frameworks hold too. A user's own
/// transforms (`jax.extend.xla`) are called after ours, in the order of registration.
const OFFERED: &[i32] = &[
    extension_type::LAYOUTS,
    extension_type::FFI,
    extension_type::MEMORY_DESCRIPTIONS,
    extension_type::SHARDINGS,
    extension_type::XLA_TRANSFORM,
];

/// The chain of what is there before the inner library is loaded: frameworks look for a profiler that early.
pub(crate) fn own_chain() -> *mut ExtensionBase {
    profiler::extension(std::ptr::null_mut())
}

/// Our own nodes and those of `inner` that are offered, in the same order; it lives as long as the process.
pub(crate) fn offered_chain(inner: &ApiRef) -> *mut ExtensionBase {
    let nodes: Vec<*mut ExtensionBase> = inner
        .extensions()
        .filter(|&node| {
            // SAFETY: a node of the library's chain lives as long as the library.
            let node = unsafe { &*node };
            OFFERED.contains(&node.r#type) && node.struct_size >= ExtensionBase::STRUCT_SIZE
        })
        .collect();
    let offered = nodes.into_iter().rev().fold(std::ptr::null_mut(), |next, node| {
        // SAFETY: the node says how many bytes it has, and it lives.
        let copy = unsafe {
            let size = (*node).struct_size;
            let words = vec![0_u64; size.div_ceil(8)].leak();
            let copy = words.as_mut_ptr().cast::<ExtensionBase>();
            std::ptr::copy_nonoverlapping(node.cast::<u8>(), copy.cast::<u8>(), size);
            copy
        };
        // SAFETY: just allocated, and at least as large as a node.
        unsafe { (*copy).next = next };
        copy
    });
    profiler::extension(offered)
}

//! Kernels that a program calls on the device: what they are to the handler that runs them, and the
//! registry through which it finds them. It knows nothing of how they are made.

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::records::RunRecord;

/// An operand or result of a kernel: dense row-major memory of XLA's.
#[derive(Clone, Copy, Debug)]
pub struct BufferRef<'a> {
    /// One of `pjrt_abi::ffi::data_type`.
    pub element_type: i32,
    /// The dimensions' lengths.
    pub dims: &'a [i64],
    /// The first byte; dangling for a buffer without bytes. A result may be written, an operand may not.
    pub data: NonNull<u8>,
    /// Size in bytes.
    pub size: usize,
}

/// A compiled kernel, ready to run. It may run several times at once.
pub trait Kernel: Send + Sync {
    /// Computes `results` from `args`; operands and results do not overlap.
    ///
    /// # Errors
    /// Why it could not: the program fails with this message.
    fn run(&self, args: &[BufferRef<'_>], results: &[BufferRef<'_>]) -> Result<RunRecord, String>;

    /// The kernel as bytes, for a serialized executable.
    fn serialize(&self) -> Vec<u8>;

    /// What it stands for in the program that it was first compiled for, for messages and traces.
    fn origin(&self) -> &str {
        "an operator"
    }

    /// The name of the device that it runs on.
    fn device(&self) -> &str {
        "act"
    }
}

/// A kernel that the handler can find as long as this lives.
pub struct RegisteredKernel {
    key: String,
    kernel: Box<dyn Kernel>,
}

impl RegisteredKernel {
    /// The kernel's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The kernel itself.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }
}

impl fmt::Debug for RegisteredKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredKernel").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Drop for RegisteredKernel {
    fn drop(&mut self) {
        let mut kernels = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
        // The key may have been registered anew since the last owner let go.
        if kernels.get(&self.key).is_some_and(|kernel| kernel.strong_count() == 0) {
            kernels.remove(&self.key);
        }
    }
}

/// Live kernels by key. Executables own them.
static KERNELS: RwLock<BTreeMap<String, Weak<RegisteredKernel>>> = RwLock::new(BTreeMap::new());

/// The live kernel with this key.
pub fn find(key: &str) -> Option<Arc<RegisteredKernel>> {
    let kernels = KERNELS.read().unwrap_or_else(PoisonError::into_inner);
    kernels.get(key)?.upgrade()
}

/// Makes a kernel findable. Equal keys mean equal kernels: if one lives already, that one is shared.
pub fn register(key: &str, kernel: Box<dyn Kernel>) -> Arc<RegisteredKernel> {
    let fresh = Arc::new(RegisteredKernel { key: key.to_owned(), kernel });
    let mut kernels = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = kernels.get(key).and_then(Weak::upgrade) {
        // Dropped after the lock, which its destructor takes.
        drop(kernels);
        return shared;
    }
    kernels.insert(key.to_owned(), Arc::downgrade(&fresh));
    fresh
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static [u8]);

    impl Kernel for Named {
        fn run(&self, _: &[BufferRef<'_>], _: &[BufferRef<'_>]) -> Result<RunRecord, String> {
            Ok(RunRecord::default())
        }

        fn serialize(&self) -> Vec<u8> {
            self.0.to_vec()
        }
    }

    #[test]
    fn equal_keys_share_one_kernel() {
        let first = register("shared", Box::new(Named(b"first")));
        let second = register("shared", Box::new(Named(b"second")));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(find("shared").unwrap().kernel().serialize(), b"first");
    }

    #[test]
    fn a_kernel_is_gone_with_its_last_owner() {
        let owner = register("owned", Box::new(Named(b"")));
        let running = find("owned").unwrap();
        drop(owner);
        assert!(find("owned").is_some(), "still running");
        drop(running);
        assert!(find("owned").is_none());
        assert!(!KERNELS.read().unwrap().contains_key("owned"), "nothing is left behind");
    }
}

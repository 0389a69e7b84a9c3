//! The function that copies one strided array of the host onto another.

use super::code::{Code, Value};
use super::index::{Index, Vars};
use super::native::{close_function, open_function};

/// A copy with one stride per length and side.
pub(crate) struct HostCopy<'a> {
    pub(crate) elem_bytes: i64,
    pub(crate) lengths: &'a [i64],
    pub(crate) from_strides: &'a [i64],
    pub(crate) to_strides: &'a [i64],
}

impl HostCopy<'_> {
    /// Bytes that are copied.
    pub(crate) fn bytes(&self) -> u64 {
        self.lengths.iter().fold(self.elem_bytes, |n, &len| n.saturating_mul(len)).max(0) as u64
    }

    /// The text of `@name(workspace, the same again, source, target)` for arrays that share no byte.
    pub(crate) fn direct(&self, name: &str) -> String {
        let mut code = Code::default();
        let (_, pointers) = open_function(&mut code, name, 2);
        self.run(&mut code, pointers[0], pointers[1]);
        close_function(code)
    }

    /// The same for any arrays, by way of the workspace.
    pub(crate) fn staged(&self, name: &str) -> String {
        let mut code = Code::default();
        let (workspace, pointers) = open_function(&mut code, name, 2);
        let mut dense = vec![self.elem_bytes; self.lengths.len()];
        for d in (1..dense.len()).rev() {
            dense[d - 1] = dense[d].saturating_mul(self.lengths[d]);
        }
        HostCopy { to_strides: &dense, ..*self }.run(&mut code, pointers[0], workspace.base);
        HostCopy { from_strides: &dense, ..*self }.run(&mut code, workspace.base, pointers[1]);
        close_function(code)
    }

    fn run(&self, code: &mut Code, source: Value, target: Value) {
        if self.lengths.contains(&0) {
            return;
        }
        let mut dims: Vec<(i64, i64, i64)> = self
            .lengths
            .iter()
            .zip(self.from_strides)
            .zip(self.to_strides)
            .map(|((&len, &from), &to)| (len, from, to))
            .filter(|dim| dim.0 > 1)
            .collect();
        // What is contiguous on both sides moves at once.
        let mut run = self.elem_bytes;
        while let Some(&(len, from, to)) = dims.last()
            && from == run
            && to == run
        {
            run *= len;
            dims.pop();
        }
        let mut vars = Vars::default();
        let (mut from_index, mut to_index) = (Index::constant(0), Index::constant(0));
        for &(len, from, to) in &dims {
            let (zero, one, end) = (code.const_i64(0), code.const_i64(1), code.const_i64(len));
            let iv = code.name();
            code.open(format_args!("scf.for {iv} = {zero} to {end} step {one} : i64"));
            let index = vars.bound(iv, len);
            from_index = from_index.plus(from, &index);
            to_index = to_index.plus(to, &index);
        }
        if let (Some(from), Some(to)) = (vars.emit(code, &from_index), vars.emit(code, &to_index)) {
            let (source, target) = (code.pointer(source, from), code.pointer(target, to));
            if run > self.elem_bytes {
                let bytes = code.const_i64(run);
                code.line(format_args!(
                    "\"llvm.intr.memmove\"({target}, {source}, {bytes}) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
                ));
            } else {
                let ty = format!("i{}", 8 * self.elem_bytes);
                let value =
                    code.op(format_args!("llvm.load {source} {{alignment = 1 : i64}} : !llvm.ptr -> {ty}"));
                code.line(format_args!(
                    "llvm.store {value}, {target} {{alignment = 1 : i64}} : {ty}, !llvm.ptr"
                ));
            }
        }
        for _ in &dims {
            code.close();
        }
    }
}

//! The function that copies one strided array of the host onto another.

use super::code::Code;
use super::index::{Index, Vars};
use super::native::{close_function, open_function};

/// The text of `@name(workspace, source, target)`. The arguments have one stride per length.
pub(crate) fn host_copy(
    name: &str,
    elem_bytes: i64,
    lengths: &[i64],
    from_strides: &[i64],
    to_strides: &[i64],
) -> String {
    let mut code = Code::default();
    let (_, pointers) = open_function(&mut code, name, 2);
    if lengths.contains(&0) {
        return close_function(code);
    }
    let mut dims: Vec<(i64, i64, i64)> = lengths
        .iter()
        .zip(from_strides)
        .zip(to_strides)
        .map(|((&len, &from), &to)| (len, from, to))
        .filter(|dim| dim.0 > 1)
        .collect();
    // What is contiguous on both sides moves at once.
    let mut run = elem_bytes;
    while let Some(&(len, from, to)) = dims.last()
        && from == run
        && to == run
    {
        run *= len;
        dims.pop();
    }
    let mut vars = Vars::default();
    let (mut source, mut target) = (Index::constant(0), Index::constant(0));
    for &(len, from, to) in &dims {
        let (zero, one, end) = (code.const_i64(0), code.const_i64(1), code.const_i64(len));
        let iv = code.name();
        code.open(format_args!("scf.for {iv} = {zero} to {end} step {one} : i64"));
        let index = vars.bound(iv, len);
        source = source.plus(from, &index);
        target = target.plus(to, &index);
    }
    if let (Some(source), Some(target)) = (vars.emit(&mut code, &source), vars.emit(&mut code, &target)) {
        let (source, target) = (code.pointer(pointers[0], source), code.pointer(pointers[1], target));
        if run > elem_bytes {
            let bytes = code.const_i64(run);
            code.line(format_args!(
                "\"llvm.intr.memmove\"({target}, {source}, {bytes}) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
            ));
        } else {
            let ty = format!("i{}", 8 * elem_bytes);
            let value =
                code.op(format_args!("llvm.load {source} {{alignment = 1 : i64}} : !llvm.ptr -> {ty}"));
            code.line(format_args!("llvm.store {value}, {target} {{alignment = 1 : i64}} : {ty}, !llvm.ptr"));
        }
    }
    for _ in &dims {
        code.close();
    }
    close_function(code)
}

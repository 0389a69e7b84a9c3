//! `XLA_Shape`, XLA's shapes in C, and their copies. Lists of up to six elements lie in the struct, longer ones in memory
//! that C++ frees with `delete[]`. Knows nothing of what a shape is for.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::dynamic_symbols::LoadedLibrary;

/// `TPU_C_API_MAX_INLINED`
const MAX_INLINED: usize = 6;

/// `Int64List`, `BoolList` and `TileList`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct List<T: Copy> {
    elements: Elements<T>,
    size: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
union Elements<T: Copy> {
    heap: *mut T,
    inlined: [T; MAX_INLINED],
}

/// `XLA_Tile`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    dimensions: List<i64>,
}

/// `XLA_Layout`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    minor_to_major: List<i64>,
    tiles: List<Tile>,
    index_primitive_type: i32,
    pointer_primitive_type: i32,
    element_size_in_bits: i64,
    memory_space: i64,
    dynamic_shape_metadata_prefix_bytes: i64,
    tail_padding_alignment_in_elements: i64,
}

/// `XLA_Shape`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    element_type: i32,
    dimensions: List<i64>,
    dynamic_dimensions: List<bool>,
    tuple_shapes: *mut Shape,
    tuple_shapes_size: i32,
    has_layout: bool,
    layout: Layout,
}

/// A copy that shares no memory with the shape.
///
/// # Safety
/// The shape must be one that TensorFlow has filled in.
pub(crate) unsafe fn copy_shape(shape: &Shape) -> Shape {
    let mut copy = *shape;
    // SAFETY: the caller's promise, for every list and element of the tree; `layout` is filled in where `has_layout`.
    unsafe {
        copy.dimensions = copy_list(&shape.dimensions);
        copy.dynamic_dimensions = copy_list(&shape.dynamic_dimensions);
        let elements = usize::try_from(shape.tuple_shapes_size).unwrap_or(0);
        if elements > 0 {
            copy.tuple_shapes = new_array(elements);
            for at in 0..elements {
                copy.tuple_shapes.add(at).write(copy_shape(&*shape.tuple_shapes.add(at)));
            }
        }
        if shape.has_layout {
            copy.layout.minor_to_major = copy_list(&shape.layout.minor_to_major);
            copy.layout.tiles = copy_tiles(&shape.layout.tiles);
        }
    }
    copy
}

/// # Safety
/// As for [`copy_shape`].
unsafe fn copy_list<T: Copy>(list: &List<T>) -> List<T> {
    let mut copy = *list;
    let size = usize::try_from(list.size).unwrap_or(0);
    if size > MAX_INLINED {
        // SAFETY: such a list has its elements outside of the struct.
        unsafe {
            let elements = new_array(size);
            std::ptr::copy_nonoverlapping(list.elements.heap, elements, size);
            copy.elements.heap = elements;
        }
    }
    copy
}

/// Tiles are lists themselves.
///
/// # Safety
/// As for [`copy_shape`].
unsafe fn copy_tiles(tiles: &List<Tile>) -> List<Tile> {
    // SAFETY: the caller's promise; the size says which member of the union holds the elements.
    unsafe {
        let mut copy = copy_list(tiles);
        let size = usize::try_from(tiles.size).unwrap_or(0);
        let elements = if size > MAX_INLINED {
            copy.elements.heap
        } else {
            (&raw mut copy.elements.inlined).cast::<Tile>()
        };
        for at in 0..size {
            let tile = elements.add(at);
            (*tile).dimensions = copy_list(&(*tile).dimensions);
        }
        copy
    }
}

/// Room for so many elements, from the allocator of C++'s `new[]`.
fn new_array<T>(count: usize) -> *mut T {
    type NewArray = unsafe extern "C" fn(size: usize) -> *mut c_void;
    static NEW_ARRAY: OnceLock<NewArray> = OnceLock::new();
    let new_array = NEW_ARRAY.get_or_init(|| {
        match LoadedLibrary::find(c"libstdc++.so.6").and_then(|library| library.symbol(c"_Znam")) {
            // SAFETY: the mangled name of `operator new[](size_t)`.
            Some(address) => unsafe { std::mem::transmute::<*mut c_void, NewArray>(address) },
            // What `new[]` of a C++ runtime that is linked elsewhere calls.
            None => libc::malloc,
        }
    });
    // SAFETY: any size may be asked for; C++ throws or the program ends where there is none.
    unsafe { new_array(count * size_of::<T>()) }.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<T: Copy>(elements: &[T], filler: T) -> List<T> {
        let size = elements.len() as i64;
        if elements.len() > MAX_INLINED {
            let heap = elements.to_vec().leak().as_mut_ptr();
            return List { elements: Elements { heap }, size };
        }
        let mut inlined = [filler; MAX_INLINED];
        inlined[..elements.len()].copy_from_slice(elements);
        List { elements: Elements { inlined }, size }
    }

    fn elements<T: Copy>(list: &List<T>) -> Vec<T> {
        let size = list.size as usize;
        // SAFETY: the size says which member holds the elements.
        unsafe {
            if size > MAX_INLINED {
                std::slice::from_raw_parts(list.elements.heap, size).to_vec()
            } else {
                list.elements.inlined[..size].to_vec()
            }
        }
    }

    fn shape(rank: i64, tiles: &[Tile]) -> Shape {
        let dimensions: Vec<i64> = (1..=rank).collect();
        let orders: Vec<i64> = (0..rank).rev().collect();
        let no_tile = Tile { dimensions: list(&[], 0) };
        Shape {
            element_type: 11,
            dimensions: list(&dimensions, 0),
            dynamic_dimensions: list(&vec![true; rank as usize], false),
            tuple_shapes: std::ptr::null_mut(),
            tuple_shapes_size: 0,
            has_layout: true,
            layout: Layout {
                minor_to_major: list(&orders, 0),
                tiles: list(tiles, no_tile),
                index_primitive_type: 0,
                pointer_primitive_type: 0,
                element_size_in_bits: 4,
                memory_space: 5,
                dynamic_shape_metadata_prefix_bytes: 0,
                tail_padding_alignment_in_elements: 1,
            },
        }
    }

    /// Everything that a copy must keep, read through the pointers.
    fn contents(shape: &Shape) -> String {
        let tiles: Vec<Vec<i64>> =
            elements(&shape.layout.tiles).iter().map(|tile| elements(&tile.dimensions)).collect();
        // SAFETY: so many shapes are in the tuple.
        let parts: Vec<String> = (0..shape.tuple_shapes_size as usize)
            .map(|at| contents(unsafe { &*shape.tuple_shapes.add(at) }))
            .collect();
        format!(
            "{} {:?} {:?} {:?} {tiles:?} {} {} {parts:?}",
            shape.element_type,
            elements(&shape.dimensions),
            elements(&shape.dynamic_dimensions),
            elements(&shape.layout.minor_to_major),
            shape.layout.element_size_in_bits,
            shape.layout.memory_space,
        )
    }

    #[test]
    fn copies_are_whole_and_share_nothing() {
        let long = Tile { dimensions: list(&[1, 2, 3, 4, 5, 6, 7, 8], 0) };
        let short = Tile { dimensions: list(&[8, 128], 0) };
        let mut tuple = shape(0, &[]);
        let mut parts =
            [shape(2, &[short]), shape(6, &[long, short]), shape(7, &[short; 9]), shape(9, &[long; 7])];
        (tuple.tuple_shapes, tuple.tuple_shapes_size) = (parts.as_mut_ptr(), parts.len() as i32);
        let before = contents(&tuple);
        // SAFETY: whole shapes, made above.
        let copy = unsafe { copy_shape(&tuple) };
        assert_eq!(contents(&copy), before);
        // Overwriting all that the original points to leaves the copy as it was.
        for part in &mut parts {
            for tile in 0..part.layout.tiles.size as usize {
                // SAFETY: the size says which member holds the elements.
                unsafe {
                    let tiles = match tile {
                        _ if part.layout.tiles.size as usize > MAX_INLINED => part.layout.tiles.elements.heap,
                        _ => (&raw mut part.layout.tiles.elements.inlined).cast(),
                    };
                    let dimensions = &mut (*tiles.add(tile)).dimensions;
                    if dimensions.size as usize > MAX_INLINED {
                        dimensions.elements.heap.write(-1);
                    }
                }
            }
            if part.dimensions.size as usize > MAX_INLINED {
                // SAFETY: as above.
                unsafe { part.dimensions.elements.heap.write(-1) };
            }
            part.element_type = 0;
        }
        assert_eq!(contents(&copy), before);
    }

    #[test]
    fn layouts_are_those_of_the_header() {
        // sizeof and offsetof, as a C compiler gives them for xla/stream_executor/tpu/c_api_decl.h.
        assert_eq!((size_of::<List<i64>>(), size_of::<List<bool>>()), (56, 16));
        assert_eq!((size_of::<Tile>(), size_of::<List<Tile>>()), (56, 344));
        assert_eq!((size_of::<Layout>(), size_of::<Shape>()), (440, 536));
        assert_eq!(std::mem::offset_of!(Shape, layout), 96);
    }
}

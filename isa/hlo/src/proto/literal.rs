//! LiteralProto (xla_data.proto) as a [`Literal`], and back.

use super::shape::{ArrayShape, HloShape};
use super::wire::{Message, ProtoError};
use crate::{ElemType, Layout, Literal};

const NAME: &str = "LiteralProto";
const SHAPE: u32 = 1;

/// How a LiteralProto keeps the elements of one type.
enum Storage {
    /// Raw little-endian bytes.
    Bytes(u32),
    /// Repeated float or double: fixed-width, so raw little-endian bytes again (complex as pairs).
    Fixed(u32),
    /// Repeated integers, one varint each.
    Varint(u32),
}

fn storage(elem: ElemType) -> Option<Storage> {
    Some(match elem {
        ElemType::Pred => Storage::Varint(2),
        ElemType::U8 => Storage::Bytes(3),
        ElemType::S32 => Storage::Varint(4),
        ElemType::S64 => Storage::Varint(5),
        ElemType::U32 => Storage::Varint(6),
        ElemType::U64 => Storage::Varint(7),
        ElemType::F32 => Storage::Fixed(8),
        ElemType::F64 => Storage::Fixed(9),
        ElemType::F16 => Storage::Bytes(11),
        ElemType::C64 => Storage::Fixed(12),
        ElemType::BF16 => Storage::Bytes(13),
        ElemType::S8 => Storage::Bytes(15),
        ElemType::U16 => Storage::Bytes(16),
        ElemType::S16 => Storage::Bytes(17),
        ElemType::C128 => Storage::Fixed(18),
        // XLA packs two to a byte here.
        ElemType::S4 | ElemType::U4 => return None,
    })
}

/// Reads an array literal. Its elements stand in the order of its layout; ours are row-major.
///
/// # Errors
/// Malformed bytes, tuples, 4-bit elements, fewer or more elements than the shape has.
pub fn read_literal(message: &Message) -> Result<Literal, ProtoError> {
    let shape = message.message(SHAPE, NAME)?.ok_or(ProtoError::Missing { message: NAME, field: "shape" })?;
    let HloShape::Array(ArrayShape { shape, layout, exotic }) = HloShape::from_message(&shape)? else {
        return Err(malformed("not an array of a type we compute with"));
    };
    if exotic {
        return Err(malformed("not a dense array"));
    }
    let width = shape.elem.bytes();
    let dense = match storage(shape.elem) {
        None => return Err(malformed("packed 4-bit elements")),
        Some(Storage::Bytes(number)) => message.bytes(number).map_or_else(Vec::new, |b| b.to_vec()),
        Some(Storage::Fixed(number)) => message.fixed_bytes(number),
        Some(Storage::Varint(number)) => {
            let mut out = Vec::new();
            for value in message.ints(number, NAME)? {
                let value = if shape.elem == ElemType::Pred { i64::from(value != 0) } else { value };
                out.extend_from_slice(value.to_le_bytes().get(..width as usize).unwrap_or_default());
            }
            out
        }
    };
    if dense.len() as u64 != shape.bytes() {
        return Err(malformed(&format!("{} bytes of elements for {shape}", dense.len())));
    }
    let row_major = match layout {
        // An empty array may have dimensions whose product overflows; it has nothing to reorder.
        Some(layout) if !layout.is_row_major() && !dense.is_empty() => {
            reorder(&dense, &shape.dims, &layout, width as usize)
        }
        _ => dense,
    };
    Literal::from_bytes(shape, row_major).map_err(|e| malformed(&e.to_string()))
}

/// A LiteralProto in row-major order; `None` for 4-bit elements.
pub fn write_literal(literal: &Literal) -> Option<Message> {
    let mut out = Message::default();
    out.set_message(SHAPE, &HloShape::row_major(literal.shape().clone()).to_message());
    match storage(literal.elem())? {
        Storage::Bytes(number) | Storage::Fixed(number) => out.set_bytes(number, literal.bytes().to_vec()),
        Storage::Varint(number) => {
            let signed = literal.elem().is_signed_int();
            let values = literal.bytes().chunks_exact(literal.elem().bytes() as usize).map(|chunk| {
                let negative = signed && chunk.last().is_some_and(|&b| b >= 0x80);
                let mut wide = [if negative { 0xff } else { 0 }; 8];
                wide.iter_mut().zip(chunk).for_each(|(w, &c)| *w = c);
                i64::from_le_bytes(wide)
            });
            out.set_ints(number, &values.collect::<Vec<_>>());
        }
    }
    Some(out)
}

fn malformed(reason: &str) -> ProtoError {
    ProtoError::Malformed { message: NAME, reason: reason.to_owned() }
}

/// Elements in the order of `layout` put into row-major order. `dense` holds exactly the
/// elements of `dims`, at least one.
fn reorder(dense: &[u8], dims: &[u64], layout: &Layout, width: usize) -> Vec<u8> {
    let mut strides = vec![0usize; dims.len()];
    let mut step = width;
    for &d in &layout.minor_to_major {
        strides[d] = step;
        step *= dims[d] as usize;
    }
    let mut out = Vec::with_capacity(dense.len());
    let mut index = vec![0u64; dims.len()];
    while out.len() < dense.len() {
        let at: usize = index.iter().zip(&strides).map(|(&i, &s)| i as usize * s).sum();
        out.extend_from_slice(&dense[at..at + width]);
        for d in (0..dims.len()).rev() {
            index[d] += 1;
            if index[d] < dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn every_element_type_round_trips() {
        for elem in ElemType::ALL {
            let shape = Shape::new(elem, [3, 2]);
            let bytes: Vec<u8> = match elem {
                ElemType::Pred => vec![1, 0, 1, 1, 0, 1],
                _ => (0..shape.bytes()).map(|i| (i as u8).wrapping_mul(83).wrapping_add(0x80)).collect(),
            };
            let literal = Literal::from_bytes(shape, bytes).unwrap();
            match write_literal(&literal) {
                Some(message) => assert_eq!(read_literal(&message).unwrap(), literal, "{elem}"),
                None => assert_eq!(elem.bits(), 4),
            }
        }
    }

    #[test]
    fn column_major_elements_are_put_in_row_major_order() {
        let mut message = Message::default();
        let shape = HloShape::Array(ArrayShape {
            shape: Shape::new(ElemType::S32, [2, 3]),
            layout: Some(Layout { minor_to_major: vec![0, 1], tiles: vec![] }),
            exotic: false,
        });
        message.set_message(SHAPE, &shape.to_message());
        message.set_ints(4, &[0, 10, 1, 11, 2, -12]);
        let literal = read_literal(&message).unwrap();
        let values: Vec<i32> =
            literal.bytes().chunks_exact(4).map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        assert_eq!(values, [0, 1, 2, 10, 11, -12]);
    }

    #[test]
    fn a_huge_shape_with_few_elements_is_an_error() {
        let mut message = Message::default();
        let shape = HloShape::row_major(Shape::new(ElemType::F64, [1 << 40, 1 << 40]));
        message.set_message(SHAPE, &shape.to_message());
        message.set_bytes(9, vec![0u8; 8]);
        assert!(read_literal(&message).is_err());
    }
}

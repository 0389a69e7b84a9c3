//! ShapeProto and LayoutProto (xla_data.proto) as our shapes, and back.

use super::wire::{Message, ProtoError};
use crate::{ElemType, Layout, Shape};

/// The type of an HLO value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HloShape {
    Array(ArrayShape),
    Tuple(Vec<HloShape>),
    /// A token, an opaque value or an element type that the project does not compute with, by its number in
    /// `PrimitiveType`.
    Other(i64),
}

/// An array type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    pub shape: Shape,
    /// Absent before layout assignment.
    pub layout: Option<Layout>,
    /// The bytes are not a plain dense array: dynamic or sparse dimensions, packed sub-byte elements, another
    /// memory space, padding. Nobody but XLA may touch such a value.
    pub exotic: bool,
}

/// Nesting of tuples that is still read; XLA programs need a handful.
const MAX_DEPTH: usize = 32;

mod field {
    pub(super) const ELEMENT_TYPE: u32 = 2;
    pub(super) const DIMENSIONS: u32 = 3;
    pub(super) const TUPLE_SHAPES: u32 = 4;
    pub(super) const LAYOUT: u32 = 5;
    pub(super) const IS_DYNAMIC: u32 = 6;

    pub(super) const MINOR_TO_MAJOR: u32 = 1;
    pub(super) const TILES: u32 = 6;
    pub(super) const ELEMENT_SIZE_IN_BITS: u32 = 7;
    pub(super) const MEMORY_SPACE: u32 = 8;
    pub(super) const DIM_LEVEL_TYPES: u32 = 9;
    pub(super) const PHYSICAL_SHAPE: u32 = 10;
    pub(super) const DYNAMIC_PREFIX: u32 = 15;
    pub(super) const TAIL_PADDING: u32 = 16;
    pub(super) const SPLIT_CONFIGS: u32 = 17;

    pub(super) const TILE_DIMENSIONS: u32 = 1;
}

const PRIMITIVE_TUPLE: i64 = 13;

impl HloShape {
    /// A dense array in row-major order.
    pub fn row_major(shape: Shape) -> HloShape {
        let layout = Some(Layout::row_major(shape.rank()));
        HloShape::Array(ArrayShape { shape, layout, exotic: false })
    }

    pub fn array(&self) -> Option<&ArrayShape> {
        match self {
            HloShape::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Reads a ShapeProto.
    ///
    /// # Errors
    /// Malformed bytes, negative sizes, a layout that is no permutation of the dimensions.
    pub fn from_message(message: &Message) -> Result<HloShape, ProtoError> {
        from_message(message, 0)
    }

    /// A ShapeProto. Of an exotic array the exotic part is lost: copy such a shape as bytes instead.
    pub fn to_message(&self) -> Message {
        let mut out = Message::default();
        match self {
            HloShape::Other(number) => out.set_int(field::ELEMENT_TYPE, *number),
            HloShape::Tuple(members) => {
                out.set_int(field::ELEMENT_TYPE, PRIMITIVE_TUPLE);
                for member in members {
                    out.push(super::wire::Field::bytes(field::TUPLE_SHAPES, member.to_message().to_bytes()));
                }
            }
            HloShape::Array(ArrayShape { shape, layout, .. }) => {
                out.set_int(field::ELEMENT_TYPE, i64::from(shape.elem.primitive_type()));
                let dims: Vec<i64> = shape.dims.iter().map(|&d| d as i64).collect();
                out.set_ints(field::DIMENSIONS, &dims);
                if !dims.is_empty() {
                    out.set_ints(field::IS_DYNAMIC, &vec![0; dims.len()]);
                }
                if let Some(layout) = layout {
                    out.set_message(field::LAYOUT, &layout_message(layout));
                }
            }
        }
        out
    }
}

fn layout_message(layout: &Layout) -> Message {
    let mut out = Message::default();
    let order: Vec<i64> = layout.minor_to_major.iter().map(|&d| d as i64).collect();
    out.set_ints(field::MINOR_TO_MAJOR, &order);
    for tile in &layout.tiles {
        let mut t = Message::default();
        t.set_ints(field::TILE_DIMENSIONS, tile);
        out.push(super::wire::Field::bytes(field::TILES, t.to_bytes()));
    }
    out.set_int(field::TAIL_PADDING, 1);
    out
}

fn from_message(message: &Message, depth: usize) -> Result<HloShape, ProtoError> {
    const NAME: &str = "ShapeProto";
    if depth > MAX_DEPTH {
        return Err(ProtoError::TooDeep(MAX_DEPTH));
    }
    let number = message.int(field::ELEMENT_TYPE);
    if number == PRIMITIVE_TUPLE {
        let members = message
            .all_bytes(field::TUPLE_SHAPES)
            .map(|bytes| from_message(&Message::parse(bytes, NAME)?, depth + 1))
            .collect::<Result<_, _>>()?;
        return Ok(HloShape::Tuple(members));
    }
    let Some(elem) = i32::try_from(number).ok().and_then(ElemType::from_primitive_type) else {
        return Ok(HloShape::Other(number));
    };
    let mut dims = Vec::new();
    for d in message.ints(field::DIMENSIONS, NAME)? {
        // A dynamic dimension without a bound is i64::MIN in XLA; no buffer of ours has one.
        let d = u64::try_from(d).map_err(|_| ProtoError::OutOfRange {
            message: NAME,
            field: "dimensions",
            value: d.to_string(),
        })?;
        dims.push(d);
    }
    let mut exotic = message.ints(field::IS_DYNAMIC, NAME)?.iter().any(|&d| d != 0);
    let layout = match message.message(field::LAYOUT, "LayoutProto")? {
        None => None,
        Some(proto) => {
            exotic |= is_exotic(&proto, elem)?;
            Some(read_layout(&proto, dims.len())?)
        }
    };
    exotic |= layout.as_ref().is_some_and(|l| !l.tiles.is_empty());
    Ok(HloShape::Array(ArrayShape { shape: Shape { elem, dims }, layout, exotic }))
}

fn is_exotic(layout: &Message, elem: ElemType) -> Result<bool, ProtoError> {
    let bits = layout.int(field::ELEMENT_SIZE_IN_BITS);
    let tail = layout.int(field::TAIL_PADDING);
    Ok((bits != 0 && bits != elem.bytes() as i64 * 8)
        || layout.int(field::MEMORY_SPACE) != 0
        || layout.ints(field::DIM_LEVEL_TYPES, "LayoutProto")?.iter().any(|&t| t != 0)
        || layout.has(field::PHYSICAL_SHAPE)
        || layout.int(field::DYNAMIC_PREFIX) != 0
        || !(tail == 0 || tail == 1)
        || layout.has(field::SPLIT_CONFIGS))
}

fn read_layout(layout: &Message, rank: usize) -> Result<Layout, ProtoError> {
    const NAME: &str = "LayoutProto";
    let order = layout.ints(field::MINOR_TO_MAJOR, NAME)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i64) {
        let value = format!("{order:?} for rank {rank}");
        return Err(ProtoError::OutOfRange { message: NAME, field: "minor_to_major", value });
    }
    let tiles = layout
        .all_bytes(field::TILES)
        .map(|b| Message::parse(b, "TileProto")?.ints(field::TILE_DIMENSIONS, "TileProto"))
        .collect::<Result<_, _>>()?;
    Ok(Layout { minor_to_major: order.into_iter().map(|d| d as usize).collect(), tiles })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let inner = ArrayShape {
            shape: Shape::new(ElemType::F32, [2, 3, 5]),
            layout: Some(Layout { minor_to_major: vec![1, 2, 0], tiles: vec![] }),
            exotic: false,
        };
        let shape = HloShape::Tuple(vec![
            HloShape::Array(inner),
            HloShape::row_major(Shape::scalar(ElemType::Pred)),
            HloShape::Other(17),
        ]);
        assert_eq!(HloShape::from_message(&shape.to_message()).unwrap(), shape);
    }

    #[test]
    fn hostile_shapes_are_errors() {
        let mut deep = HloShape::Other(17);
        for _ in 0..100 {
            deep = HloShape::Tuple(vec![deep]);
        }
        assert_eq!(HloShape::from_message(&deep.to_message()), Err(ProtoError::TooDeep(MAX_DEPTH)));

        let mut negative = HloShape::row_major(Shape::new(ElemType::F32, [2])).to_message();
        negative.set_ints(field::DIMENSIONS, &[-2]);
        assert!(HloShape::from_message(&negative).is_err());

        let wrong = HloShape::Array(ArrayShape {
            shape: Shape::new(ElemType::F32, [2, 2]),
            layout: Some(Layout { minor_to_major: vec![0, 0], tiles: vec![] }),
            exotic: false,
        });
        assert!(HloShape::from_message(&wrong.to_message()).is_err());
    }

    #[test]
    fn packed_elements_are_exotic() {
        let mut packed = HloShape::row_major(Shape::new(ElemType::S4, [8])).to_message();
        let mut layout = packed.message(field::LAYOUT, "LayoutProto").unwrap().unwrap();
        layout.set_int(field::ELEMENT_SIZE_IN_BITS, 4);
        packed.set_message(field::LAYOUT, &layout);
        assert!(HloShape::from_message(&packed).unwrap().array().unwrap().exotic);
    }
}

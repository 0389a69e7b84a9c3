//! Reading a node of a TensorFlow graph (`NodeDef`) from its bytes: the operator and its attributes. Attributes stay
//! bytes. Knows protobuf's wire format, as much as that takes.

use std::ffi::CString;

/// Field numbers of `NodeDef`, and of an entry of its map of attributes.
const OPERATOR: u64 = 2;
const ATTRIBUTE: u64 = 5;
const KEY: u64 = 1;
const VALUE: u64 = 2;

/// A node's operator and what it was given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NodeDefinition {
    pub(crate) operator: CString,
    /// Name and `AttrValue` of each attribute that belongs to the operator; names that begin with an underscore belong
    /// to the graph.
    pub(crate) attributes: Vec<(CString, Vec<u8>)>,
}

impl NodeDefinition {
    /// Reads the bytes; `None` where they are no such message.
    pub(crate) fn read(bytes: &[u8]) -> Option<NodeDefinition> {
        let (mut operator, mut attributes) = (None, Vec::new());
        for (field, value) in fields(bytes)? {
            match field {
                OPERATOR => operator = Some(CString::new(value).ok()?),
                ATTRIBUTE => {
                    let entry = fields(value)?;
                    let part =
                        |number| entry.iter().find(|(field, _)| *field == number).map(|&(_, value)| value);
                    let name = part(KEY)?;
                    if !name.starts_with(b"_") {
                        attributes.push((CString::new(name).ok()?, part(VALUE).unwrap_or_default().to_vec()));
                    }
                }
                _ => {}
            }
        }
        Some(NodeDefinition { operator: operator?, attributes })
    }
}

/// The fields of a message that have bytes: number and contents. Others are passed over.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        match tag & 7 {
            0 => {
                take_varint(&mut bytes)?;
            }
            1 => bytes = bytes.get(8..)?,
            2 => {
                let size = usize::try_from(take_varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(size)?;
                found.push((tag >> 3, value));
                bytes = rest;
            }
            5 => bytes = bytes.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name: "n" op: "TensorListLength" input: "i" attr { key: "_class" value { } } attr { key: "T" value { type: 1 } }`
    const BYTES: &[u8] = b"\x0a\x01n\x12\x10TensorListLength\x1a\x01i\
        \x2a\x0a\x0a\x06_class\x12\x00\x2a\x07\x0a\x01T\x12\x02\x30\x01";

    #[test]
    fn operator_and_attributes_are_read() {
        let expected = NodeDefinition {
            operator: c"TensorListLength".to_owned(),
            attributes: vec![(c"T".to_owned(), vec![0x30, 1])],
        };
        assert_eq!(NodeDefinition::read(BYTES), Some(expected));
    }

    #[test]
    fn what_is_cut_off_within_a_field_is_refused() {
        for end in [1, 2, 8, BYTES.len() - 1] {
            assert_eq!(NodeDefinition::read(&BYTES[..end]), None, "{end} bytes");
        }
        assert_eq!(NodeDefinition::read(&[0xff; 11]), None);
    }
}

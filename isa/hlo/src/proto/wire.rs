//! Protocol-buffer wire format, kept byte for byte: a message is its fields in their original order and
//! encoding; only a field that is edited is encoded anew. Knows no schema.

use prost::bytes::{Buf, Bytes};
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

/// Why bytes could not be read as the message they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    #[error("malformed {message}: {reason}")]
    Malformed { message: &'static str, reason: String },
    #[error("{message}: field {field} is missing")]
    Missing { message: &'static str, field: &'static str },
    #[error("{message}: field {field} has value {value}, which is out of range")]
    OutOfRange { message: &'static str, field: &'static str, value: String },
    #[error("shapes nest deeper than {0} levels")]
    TooDeep(usize),
    #[error("no computation has id {0}")]
    NoSuchComputation(i64),
    #[error("no instruction has id {0}")]
    NoSuchInstruction(i64),
}

/// What a field holds. Groups (wire types 3 and 4) are carried along unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(Bytes),
    Group,
}

/// One field as it stands on the wire, its key included in `raw`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub number: u32,
    pub payload: Payload,
    raw: Bytes,
}

impl Field {
    /// A field in canonical encoding.
    pub fn varint(number: u32, value: u64) -> Field {
        let mut raw = Vec::new();
        encode_key(number, WireType::Varint, &mut raw);
        encode_varint(value, &mut raw);
        Field { number, payload: Payload::Varint(value), raw: raw.into() }
    }

    /// A length-delimited field in canonical encoding.
    pub fn bytes(number: u32, value: impl Into<Bytes>) -> Field {
        let value = value.into();
        let mut raw = Vec::with_capacity(value.len() + 12);
        encode_key(number, WireType::LengthDelimited, &mut raw);
        encode_varint(value.len() as u64, &mut raw);
        raw.extend_from_slice(&value);
        Field { number, payload: Payload::Bytes(value), raw: raw.into() }
    }

    /// The field's bytes, key and length included.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }
}

/// A message as the list of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    fields: Vec<Field>,
}

impl Message {
    /// Splits `bytes` into fields. Memory is proportional to the input: every field is a view into it.
    ///
    /// # Errors
    /// Truncated or malformed input; `message` names it in the error.
    pub fn parse(bytes: &Bytes, message: &'static str) -> Result<Message, ProtoError> {
        let malformed = |e: prost::DecodeError| ProtoError::Malformed { message, reason: e.to_string() };
        let mut fields = Vec::new();
        let mut rest = bytes.clone();
        while rest.has_remaining() {
            let field_start = rest.clone();
            let (number, wire_type) = decode_key(&mut rest).map_err(malformed)?;
            let after_key = rest.clone();
            let payload = match wire_type {
                WireType::Varint => Payload::Varint(decode_varint(&mut rest).map_err(malformed)?),
                _ => {
                    skip_field(wire_type, number, &mut rest, DecodeContext::default()).map_err(malformed)?;
                    read_payload(wire_type, after_key, rest.remaining()).map_err(malformed)?
                }
            };
            let raw = field_start.slice(..field_start.len() - rest.len());
            fields.push(Field { number, payload, raw });
        }
        Ok(Message { fields })
    }

    /// The message's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.fields.iter().map(|f| f.raw.len()).sum());
        for field in &self.fields {
            out.extend_from_slice(&field.raw);
        }
        out.into()
    }

    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub fn push(&mut self, field: Field) {
        self.fields.push(field);
    }

    /// The last value of a scalar field, as protocol buffers define it; zero when absent.
    pub fn uint(&self, number: u32) -> u64 {
        let value = self.fields.iter().rev().find_map(|f| match f.payload {
            Payload::Varint(v) if f.number == number => Some(v),
            _ => None,
        });
        value.unwrap_or(0)
    }

    pub fn int(&self, number: u32) -> i64 {
        self.uint(number) as i64
    }

    pub fn flag(&self, number: u32) -> bool {
        self.uint(number) != 0
    }

    /// The last occurrence of a length-delimited field.
    pub fn bytes(&self, number: u32) -> Option<&Bytes> {
        self.all_bytes(number).last()
    }

    /// Every occurrence of a length-delimited field.
    pub fn all_bytes(&self, number: u32) -> impl Iterator<Item = &Bytes> {
        self.fields.iter().filter(move |f| f.number == number).filter_map(|f| match &f.payload {
            Payload::Bytes(b) => Some(b),
            _ => None,
        })
    }

    /// A string field, empty when absent.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn string(&self, number: u32, message: &'static str) -> Result<&str, ProtoError> {
        let bytes = self.bytes(number).map_or(&[][..], |b| b);
        std::str::from_utf8(bytes)
            .map_err(|e| ProtoError::Malformed { message, reason: format!("field {number}: {e}") })
    }

    /// A sub-message. Occurrences of a singular message merge, which on the wire is concatenation.
    ///
    /// # Errors
    /// When its bytes are malformed.
    pub fn message(&self, number: u32, message: &'static str) -> Result<Option<Message>, ProtoError> {
        let mut found = self.all_bytes(number);
        let Some(first) = found.next() else { return Ok(None) };
        let mut merged = Message::parse(first, message)?;
        for more in found {
            merged.fields.extend(Message::parse(more, message)?.fields);
        }
        Ok(Some(merged))
    }

    /// A repeated integer field, packed or not.
    ///
    /// # Errors
    /// When packed bytes are malformed.
    pub fn ints(&self, number: u32, message: &'static str) -> Result<Vec<i64>, ProtoError> {
        let mut out = Vec::new();
        for field in self.fields.iter().filter(|f| f.number == number) {
            match &field.payload {
                Payload::Varint(v) => out.push(*v as i64),
                Payload::Bytes(packed) => {
                    let mut rest = packed.clone();
                    while rest.has_remaining() {
                        let value = decode_varint(&mut rest)
                            .map_err(|e| ProtoError::Malformed { message, reason: e.to_string() })?;
                        out.push(value as i64);
                    }
                }
                _ => {
                    return Err(ProtoError::Malformed {
                        message,
                        reason: format!("field {number}: wire type"),
                    });
                }
            }
        }
        Ok(out)
    }

    /// A repeated field of fixed-width values as the bytes of all of them, packed or not.
    pub fn fixed_bytes(&self, number: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for field in self.fields.iter().filter(|f| f.number == number) {
            match &field.payload {
                Payload::Bytes(packed) => out.extend_from_slice(packed),
                Payload::Fixed32(v) => out.extend_from_slice(&v.to_le_bytes()),
                Payload::Fixed64(v) => out.extend_from_slice(&v.to_le_bytes()),
                Payload::Varint(_) | Payload::Group => {}
            }
        }
        out
    }

    pub fn has(&self, number: u32) -> bool {
        self.fields.iter().any(|f| f.number == number)
    }

    pub fn clear(&mut self, number: u32) {
        self.fields.retain(|f| f.number != number);
    }

    /// Replaces all occurrences of a field by one, in the place of the first.
    pub fn set(&mut self, field: Field) {
        let number = field.number;
        match self.fields.iter().position(|f| f.number == number) {
            Some(at) => {
                self.fields[at] = field;
                let mut seen = false;
                self.fields.retain(|f| f.number != number || !std::mem::replace(&mut seen, true));
            }
            None => self.fields.push(field),
        }
    }

    /// Sets a scalar; zero is the default and leaves no field.
    pub fn set_int(&mut self, number: u32, value: i64) {
        match value {
            0 => self.clear(number),
            _ => self.set(Field::varint(number, value as u64)),
        }
    }

    /// Sets a string or bytes field; the empty one leaves no field.
    pub fn set_bytes(&mut self, number: u32, value: impl Into<Bytes>) {
        let value = value.into();
        if value.is_empty() {
            self.clear(number);
        } else {
            self.set(Field::bytes(number, value));
        }
    }

    /// Sets a repeated integer field, packed; the empty one leaves no field.
    pub fn set_ints(&mut self, number: u32, values: &[i64]) {
        let mut packed = Vec::with_capacity(values.len());
        for &v in values {
            encode_varint(v as u64, &mut packed);
        }
        self.set_bytes(number, packed);
    }

    /// Sets a sub-message, present even when empty.
    pub fn set_message(&mut self, number: u32, value: &Message) {
        self.set(Field::bytes(number, value.to_bytes()));
    }
}

/// The value of a non-varint field that is known to be well formed: `after_key` starts behind its key and
/// `remaining` bytes follow the field.
fn read_payload(
    wire_type: WireType,
    mut after_key: Bytes,
    remaining: usize,
) -> Result<Payload, prost::DecodeError> {
    Ok(match wire_type {
        WireType::LengthDelimited => {
            decode_varint(&mut after_key)?;
            Payload::Bytes(after_key.slice(..after_key.len() - remaining))
        }
        WireType::ThirtyTwoBit => Payload::Fixed32(after_key.get_u32_le()),
        WireType::SixtyFourBit => Payload::Fixed64(after_key.get_u64_le()),
        WireType::StartGroup | WireType::EndGroup | WireType::Varint => Payload::Group,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &'static [u8]) -> Result<Message, ProtoError> {
        Message::parse(&Bytes::from_static(bytes), "test")
    }

    #[test]
    fn non_canonical_varints_and_groups_survive() {
        // Field 1 = 1 with a padded varint, group 2 holding field 3 = 5, field 4 = "a" with a padded length.
        let bytes: &[u8] = &[0x08, 0x81, 0x00, 0x13, 0x18, 0x05, 0x14, 0x22, 0x81, 0x00, b'a'];
        let mut m = parse(&[0x08, 0x81, 0x00, 0x13, 0x18, 0x05, 0x14, 0x22, 0x81, 0x00, b'a']).unwrap();
        assert_eq!(&m.to_bytes()[..], bytes);
        assert_eq!(m.int(1), 1);
        assert_eq!(m.string(4, "test").unwrap(), "a");
        m.set_int(1, 2);
        assert_eq!(&m.to_bytes()[..], [&[0x08, 0x02], &bytes[3..]].concat());
    }

    #[test]
    fn last_scalar_wins_and_set_leaves_one() {
        let mut m = parse(&[0x08, 1, 0x10, 7, 0x08, 2]).unwrap();
        assert_eq!(m.int(1), 2);
        m.set_int(1, 3);
        assert_eq!(&m.to_bytes()[..], [0x08, 3, 0x10, 7]);
    }

    #[test]
    fn packed_and_unpacked_integers_read_alike() {
        assert_eq!(parse(&[0x0a, 2, 3, 4, 0x08, 5]).unwrap().ints(1, "test").unwrap(), [3, 4, 5]);
        let mut m = Message::default();
        m.set_ints(9, &[-1, 300]);
        assert_eq!(m.ints(9, "test").unwrap(), [-1, 300]);
    }

    #[test]
    fn truncation_is_an_error() {
        for bad in
            [&[0x0a, 5, 1][..], &[0x08], &[0x0d, 1, 2], &[0x13, 0x08], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff]]
        {
            assert!(Message::parse(&Bytes::copy_from_slice(bad), "test").is_err(), "{bad:?}");
        }
    }
}

//! Protobuf writes the entries of a map in an order that changes from process to process. This puts them in order, so that
//! equal messages have equal bytes. Knows protobuf's wire format and where the maps are that compilers are sent.

/// Maps in a `HloModuleProto`: each instruction's frontend attributes.
pub(crate) const HLO_MODULE: &[&[u64]] = &[&[3, 2, 68, 1]];

/// Maps in a `CompileOptionsProto`: its debug options' for the GPU's latency estimator and for backends.
pub(crate) const COMPILE_OPTIONS: &[&[u64]] = &[&[3, 3, 357], &[3, 3, 500]];

/// A copy of a message in which the maps at these paths of field numbers are in order of their bytes. What is no such
/// message comes back as it is.
pub(crate) fn ordered(message: &[u8], maps: &[&[u64]]) -> Vec<u8> {
    let mut copy = message.to_vec();
    // The order of entries is all that may have changed where a later part turns out to be malformed.
    match order(&mut copy, maps) {
        Some(()) => copy,
        None => message.to_vec(),
    }
}

/// Entries have their places exchanged only, so no length changes.
fn order(message: &mut [u8], maps: &[&[u64]]) -> Option<()> {
    let mut at = 0;
    while at < message.len() {
        let start = at;
        let field = skip_field(message, &mut at)?;
        let below: Vec<&[u64]> =
            maps.iter().filter(|path| path[0] == field.number).map(|path| &path[1..]).collect();
        if below.is_empty() {
            continue;
        }
        if below.iter().all(|path| !path.is_empty()) {
            order(message.get_mut(field.contents..at)?, &below)?;
            continue;
        }
        // All entries of a map follow each other.
        let mut entries = vec![message[start..at].to_vec()];
        while at < message.len() {
            let (from, mut next) = (at, at);
            if skip_field(message, &mut next)?.number != field.number {
                break;
            }
            entries.push(message[from..next].to_vec());
            at = next;
        }
        entries.sort();
        message[start..at].copy_from_slice(&entries.concat());
    }
    Some(())
}

/// A field's place in a message.
pub(crate) struct Field {
    pub(crate) number: u64,
    /// Where the contents begin.
    pub(crate) contents: usize,
}

/// Moves on behind the field that begins at `at`.
pub(crate) fn skip_field(message: &[u8], at: &mut usize) -> Option<Field> {
    let tag = varint(message, at)?;
    let mut contents = *at;
    let end = match tag & 7 {
        0 => {
            varint(message, at)?;
            *at
        }
        1 => contents.checked_add(8)?,
        2 => {
            let size = usize::try_from(varint(message, at)?).ok()?;
            contents = *at;
            contents.checked_add(size)?
        }
        5 => contents.checked_add(4)?,
        _ => return None,
    };
    if end > message.len() {
        return None;
    }
    *at = end;
    Some(Field { number: tag >> 3, contents })
}

fn varint(message: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *message.get(*at)?;
        *at += 1;
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

    /// A field of bytes; numbers up to 15 and lengths up to 127.
    fn field(number: u8, contents: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, contents.len() as u8], contents].concat()
    }

    fn entry(key: &str, value: &str) -> Vec<u8> {
        field(3, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
    }

    fn message(entries: &[Vec<u8>]) -> Vec<u8> {
        [
            field(7, b"before"),
            field(1, &[vec![8, 5], entries.concat(), field(4, b"z"), field(4, b"a")].concat()),
        ]
        .concat()
    }

    #[test]
    fn only_maps_are_put_in_order() {
        let (a, b, c) = (entry("a", "long value"), entry("b", ""), entry("c", "3"));
        let paths: &[&[u64]] = &[&[1, 3], &[2, 3]];
        let first = ordered(&message(&[c.clone(), a.clone(), b.clone()]), paths);
        let second = ordered(&message(&[b, c, a.clone()]), paths);
        assert_eq!(first, second);
        // Field 4 is a list, whose order means something, and another value is another message.
        assert!(first.windows(6).any(|w| w == [field(4, b"z"), field(4, b"a")].concat()));
        let other = ordered(&message(&[entry("b", "x"), entry("c", "3"), a]), paths);
        assert_ne!(first, other);
    }

    #[test]
    fn what_is_no_message_stays_as_it_is() {
        let whole = message(&[entry("c", "3"), entry("a", "1")]);
        let cut = &whole[..whole.len() - 1];
        assert_eq!(ordered(cut, &[&[1, 3]]), cut);
        assert_eq!(ordered(&[0xff; 12], HLO_MODULE), [0xff; 12]);
        assert!(ordered(&[], HLO_MODULE).is_empty());
    }
}

//! A program without the names in it. TensorFlow names what it compiles for one operator after the operator's node in a
//! graph, and which node stands for several equal ones changes from process to process; the code that comes of it is
//! the same. Knows protobuf's wire format and where the names in a module are.

use crate::map_order::skip_field;

/// What names and numbers a `HloModuleProto`, and says where it comes from: the module's own name, its entry's, its
/// number and its table of source lines; every computation's name; every instruction's name and metadata.
const NAMES: &[&[u64]] = &[&[1], &[2], &[5], &[17], &[3, 1], &[3, 2, 1], &[3, 2, 7]];

/// The bytes of a `HloModuleProto` without its names; `None` where they are no such message.
pub(crate) fn module(bytes: &[u8]) -> Option<Vec<u8>> {
    without(bytes, NAMES)
}

/// A message without the fields at these paths of field numbers.
fn without(message: &[u8], paths: &[&[u64]]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(message.len());
    let mut at = 0;
    while at < message.len() {
        let start = at;
        let field = skip_field(message, &mut at)?;
        let below: Vec<&[u64]> =
            paths.iter().filter(|path| path[0] == field.number).map(|path| &path[1..]).collect();
        if below.is_empty() {
            kept.extend(&message[start..at]);
        } else if below.iter().all(|path| !path.is_empty()) {
            let contents = without(&message[field.contents..at], &below)?;
            kept.extend(field.number.to_le_bytes());
            kept.extend((contents.len() as u64).to_le_bytes());
            kept.extend(contents);
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes; numbers up to 15 and lengths up to 127.
    fn field(number: u8, contents: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, contents.len() as u8], contents].concat()
    }

    /// A module of one instruction: its name, its source and its operator, and the module's name, number and layout.
    fn example(name: &str, source: &str, operator: &str, module: &str, number: u8, layout: &str) -> Vec<u8> {
        let instruction =
            [field(1, name.as_bytes()), field(2, operator.as_bytes()), field(7, source.as_bytes())].concat();
        let computation = [field(1, module.as_bytes()), field(2, &instruction), vec![5 << 3, 9]].concat();
        [
            field(1, module.as_bytes()),
            field(2, module.as_bytes()),
            field(3, &computation),
            field(4, layout.as_bytes()),
            vec![5 << 3, number],
        ]
        .concat()
    }

    #[test]
    fn modules_that_differ_in_names_alone_are_one() {
        let first = module(&example("Add_2.0", "graph/Add_2", "add", "Add_2.1", 3, "f32"));
        assert!(first.is_some());
        assert_eq!(first, module(&example("Add.0", "", "add", "a longer name", 4, "f32")));
        assert_ne!(first, module(&example("Add_2.0", "graph/Add_2", "multiply", "Add_2.1", 3, "f32")));
        assert_ne!(first, module(&example("Add_2.0", "graph/Add_2", "add", "Add_2.1", 3, "f64")));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(module(&[0xff; 12]), None);
        let whole = example("a", "b", "c", "d", 1, "e");
        assert_eq!(module(&whole[..whole.len() - 1]), None);
        assert_eq!(module(&[]), Some(Vec::new()));
    }
}

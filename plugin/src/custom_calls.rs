//! Where the custom calls stand that an error of XLA's is about: XLA tells their target, and neither operator nor line.

use std::collections::BTreeSet;

use act_hlo::proto::{HloModule, Instruction};

const OPCODE: &str = "custom-call";

/// Whether a serialized module may have custom calls.
pub(crate) fn may_occur(module: &[u8]) -> bool {
    module.windows(OPCODE.len()).any(|window| window == OPCODE.as_bytes())
}

/// The operators and source lines of the custom calls of a serialized module whose target `message` names; `None` where
/// it names none.
pub(crate) fn named_in(message: &str, module: &[u8]) -> Option<String> {
    let module = HloModule::parse(module.to_vec()).ok()?;
    let instructions = module.computations().flat_map(|computation| computation.instructions());
    let named: BTreeSet<String> = instructions
        .filter(|instruction| instruction.opcode() == OPCODE)
        .filter(|instruction| instruction.custom_call_target().is_ok_and(|target| names(message, target)))
        .filter_map(|instruction| place(&module, instruction))
        .collect();
    let named: Vec<String> = named.into_iter().collect();
    (!named.is_empty()).then(|| format!("called by {}", named.join(", and by ")))
}

/// Whether a word of the message is this name.
fn names(message: &str, target: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    !target.is_empty()
        && message.match_indices(target).any(|(at, _)| {
            let (before, after) = (&message[..at], &message[at + target.len()..]);
            !before.ends_with(part) && !after.starts_with(part)
        })
}

/// The operator of an instruction and the source line that it comes from.
pub(crate) fn place(module: &HloModule, instruction: &Instruction) -> Option<String> {
    let source = module.source(instruction).ok()??;
    Some(match (source.op_name.as_str(), source.file.as_str()) {
        (operator, "") => operator.to_owned(),
        ("", file) => format!("{file}:{}", source.line),
        (operator, file) => format!("{operator} ({file}:{})", source.line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_as_a_word() {
        let message = "No FFI handler registered for no.where_1 on a platform Host";
        assert!(names(message, "no.where_1"));
        assert!(!names(message, "where"), "part of another name");
        assert!(!names(message, "where_1x"));
        assert!(!names(message, ""));
    }
}

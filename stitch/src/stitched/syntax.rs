//! The text of one instruction inside `llvm.inline_asm`: the description's assembly with computational attributes
//! printed and addressing attributes as operands `$0`, `$1`, .. in the order of the description. Knows nothing of
//! loops.

use act_isa::{AssemblyError, AttrVal, InstrId, Isa, parse_operand_form, print_operand_form};

/// An addressing attribute as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BetaText {
    /// `$k`: the k-th operand of the inline assembly.
    Operand(usize),
    /// A number written out.
    Immediate(i64),
}

/// One instruction as parsed back from its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstrText {
    pub op: InstrId,
    pub alpha: Vec<AttrVal>,
    pub beta: Vec<BetaText>,
}

/// The text is no instruction of the description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsmTextError {
    #[error("`{text}`: {error}")]
    Assembly { text: String, error: AssemblyError },
    #[error("`{text}`: `{word}` is neither an operand nor a number")]
    Operand { text: String, word: String },
}

/// The mnemonic of [`act_isa::Program::Fence`].
pub const FENCE: &str = "fence";

/// Stands for the `$` of an operand while other `$` are doubled; no template contains it.
const OPERAND: char = '\u{1}';
/// Begins an operand's word where `act-isa` reads the text.
const WORD: char = '%';

/// The text of an instruction whose k-th addressing attribute is operand k.
pub(crate) fn print(isa: &Isa, op: InstrId, alpha: &[AttrVal]) -> String {
    let operands: Vec<String> = (0..isa.instr(op).beta.len()).map(|k| format!("{OPERAND}{k}")).collect();
    print_operand_form(isa, op, alpha, &operands).replace('$', "$$").replace(OPERAND, "$")
}

/// Reads the text of one instruction.
///
/// # Errors
/// When no instruction has this text, or an addressing attribute is neither an operand nor a number.
pub fn parse(isa: &Isa, text: &str) -> Result<InstrText, AsmTextError> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        plain.push(match (c, chars.peek()) {
            ('$', Some('$')) => {
                chars.next();
                '$'
            }
            ('$', _) => WORD,
            (c, _) => c,
        });
    }
    let (op, alpha, words) = parse_operand_form(isa, &plain)
        .map_err(|error| AsmTextError::Assembly { text: text.to_owned(), error })?;
    let read = |word: String| {
        let beta = match word.strip_prefix(WORD) {
            Some(operand) => operand.parse().ok().map(BetaText::Operand),
            None => word.parse().ok().map(BetaText::Immediate),
        };
        beta.ok_or_else(|| AsmTextError::Operand { text: text.to_owned(), word })
    };
    let beta = words.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(InstrText { op, alpha, beta })
}

//! What to do about a fault, where it can be told.

use super::check::FOLDED;
use super::diagnostic::Problem;
use crate::expr::EvalExprError;

impl Problem {
    /// A hint at the mend, shown below the fault.
    pub fn mend(&self) -> Option<String> {
        Some(match self {
            Problem::UnknownName { nearest: Some(nearest), .. } => format!("write `{nearest}`?"),
            Problem::UnexpectedCharacter('\'') => "strings stand in double quotes".to_owned(),
            Problem::Unterminated("backtick") => "close it in the same statement".to_owned(),
            Problem::Unterminated(what) => format!("close the {what} on the line on which it begins"),
            Problem::Expected { expected, found } if expected == "a condition" && found == "a number" => {
                "compare it with a number, as in `x % 2 == 0`".to_owned()
            }
            Problem::Expected { expected, found } if expected == "`==`" && found == "`=`" => {
                "`==` compares; a single `=` gives a name its value".to_owned()
            }
            Problem::Expected { found, .. } if found == "an f32 attribute" => {
                "an f32 attribute is the value of a constant and nothing else".to_owned()
            }
            Problem::DuplicateName { .. } => "rename one of them".to_owned(),
            Problem::ReservedName(_) => "choose another name".to_owned(),
            Problem::Missing { what, .. } if what.contains("hbm") => {
                "add a line such as `hbm d0: 1 GiB`".to_owned()
            }
            Problem::Missing { what, .. } if what.starts_with('`') && what.ends_with('`') => {
                format!("add {what}")
            }
            Problem::TooDeep(_) => "name a part of it: a constant, or a statement of its own".to_owned(),
            Problem::EmptyRange { .. } => "the smaller end comes first; both belong to the range".to_owned(),
            Problem::NotConstant(why) if *why != EvalExprError::Unsolved.to_string() => return None,
            Problem::NotConstant(_) => "only numbers and `const` names have a value here".to_owned(),
            Problem::Type { fits: Some(fits), .. } => {
                format!("nothing is wrong for {fits}: a narrower range or a `require` can say so")
            }
            Problem::FieldOverflow { bits, signed, .. } => {
                let signed = if *signed { " signed" } else { "" };
                format!(
                    "legal values need `width {bits}{signed}`; a narrower range of an attribute or a `require` may rule \
                     the others out"
                )
            }
            Problem::NoLegalAlpha | Problem::Contradiction => {
                "loosen a requirement or a range of the instruction".to_owned()
            }
            Problem::Unreachable { .. } => {
                "slices lie within their memories and start at multiples of the alignment; loosen the requirement"
                    .to_owned()
            }
            Problem::UnusedInput => "remove it, or compute with its `parameter`".to_owned(),
            Problem::SeveralStores { .. } => {
                "assembly and the oracle take it; for the compiler describe one instruction per place".to_owned()
            }
            Problem::Unsolvable { why, .. } if *why == FOLDED => {
                "let the constant, or its broadcast, be an operand beside a value that is none".to_owned()
            }
            Problem::Unsolvable { why, .. } if *why == "is used nowhere" => "remove it".to_owned(),
            Problem::Unsolvable { .. } => {
                "let it be a size, a stride or a constant, or make it an addressing attribute (`beta`)"
                    .to_owned()
            }
            Problem::UnusedBeta(_) => "remove it, or let it start a slice".to_owned(),
            Problem::MixedBeta(_) => "use two attributes".to_owned(),
            Problem::WindowStart => "write `[address + offset :+ length]`".to_owned(),
            Problem::NeverWritten(name) => {
                format!("add an instruction with `out {name}[..]`, or give the buffer an `init` value")
            }
            Problem::NeverProduced(name) => {
                format!("add an instruction that writes `{name}` from main memory or from nothing")
            }
            Problem::NeverRead(name) => format!("add an instruction with `in {name}[..]`"),
            _ => return None,
        })
    }
}

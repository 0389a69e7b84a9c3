//! Expressions, by precedence: `or`, `and`, `not`, comparisons, sums, products, the rest.

use super::super::lexer::Token;
use super::super::source::HexError;
use super::super::syntax::*;
use super::Parser;

/// Operands of one precedence without parentheses.
const LONGEST: usize = 1000;

impl Parser {
    pub(super) fn expr(&mut self) -> Result<Expr, HexError> {
        self.deeper(Self::whole)
    }

    fn whole(&mut self) -> Result<Expr, HexError> {
        if self.is_word("if") {
            let start = self.span();
            self.at += 1;
            let condition = self.expr()?;
            self.word("then")?;
            let then = self.expr()?;
            self.word("else")?;
            let other = self.expr()?;
            let kind = ExprKind::Select(Box::new(condition), Box::new(then), Box::new(other));
            return Ok(Expr { kind, span: start.to(self.previous()) });
        }
        self.chain(Self::conjunction, |parser| parser.take_word("or").then_some(Binary::Or))
    }

    fn conjunction(&mut self) -> Result<Expr, HexError> {
        self.chain(Self::negation, |parser| parser.take_word("and").then_some(Binary::And))
    }

    fn negation(&mut self) -> Result<Expr, HexError> {
        let start = self.span();
        if self.take_word("not") {
            let inner = self.deeper(Self::negation)?;
            return Ok(Expr { kind: ExprKind::Not(Box::new(inner)), span: start.to(self.previous()) });
        }
        let left = self.sum()?;
        let operator = match self.token() {
            Token::Mark("==") => Binary::Eq,
            Token::Mark("!=") => Binary::Ne,
            Token::Mark("<=") => Binary::Le,
            Token::Mark(">=") => Binary::Ge,
            Token::Mark("<") => Binary::Lt,
            Token::Mark(">") => Binary::Gt,
            _ => return Ok(left),
        };
        self.at += 1;
        let right = self.sum()?;
        let span = left.span.to(right.span);
        Ok(Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span })
    }

    pub(super) fn sum(&mut self) -> Result<Expr, HexError> {
        self.chain(Self::product, |parser| match parser.token() {
            Token::Mark("+") => parser.step(Binary::Add),
            Token::Mark("-") => parser.step(Binary::Sub),
            _ => None,
        })
    }

    fn product(&mut self) -> Result<Expr, HexError> {
        self.chain(Self::primary, |parser| match parser.token() {
            Token::Mark("*") => parser.step(Binary::Mul),
            Token::Mark("/") => parser.step(Binary::Div),
            Token::Mark("%") => parser.step(Binary::Mod),
            _ => None,
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "the shape that `chain` asks for")]
    fn step(&mut self, operator: Binary) -> Option<Binary> {
        self.at += 1;
        Some(operator)
    }

    /// Operands of one precedence, grouped to the left.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Result<Expr, HexError>,
        operator: fn(&mut Self) -> Option<Binary>,
    ) -> Result<Expr, HexError> {
        let mut left = operand(self)?;
        let mut operands = 1;
        while let Some(operator) = operator(self) {
            operands += 1;
            if operands > LONGEST {
                return Err(HexError::new(left.span, format!("more than {LONGEST} operands in a row")));
            }
            let right = operand(self)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    fn primary(&mut self) -> Result<Expr, HexError> {
        let start = self.span();
        let kind = match self.token().clone() {
            Token::Int(value) => {
                self.at += 1;
                ExprKind::Int(value)
            }
            Token::Mark("-") => {
                self.at += 1;
                ExprKind::Negate(Box::new(self.deeper(Self::primary)?))
            }
            Token::Mark("(") => {
                self.at += 1;
                let inner = self.expr()?;
                self.mark(")")?;
                return Ok(inner);
            }
            Token::Word(word) if word == "true" || word == "false" => {
                self.at += 1;
                ExprKind::Bool(word == "true")
            }
            Token::Word(_) => {
                let word = self.raw_name()?;
                if self.is_mark("[") {
                    let indices = self.list("[", "]", Self::expr)?;
                    ExprKind::Access(self.names.intern(&word), indices)
                } else if self.is_mark("(") {
                    let mut arguments = self.list("(", ")", Self::expr)?;
                    let builtin = match word.as_str() {
                        "add" => Some(Builtin::Add),
                        "sub" => Some(Builtin::Sub),
                        "mul" => Some(Builtin::Mul),
                        "max" => Some(Builtin::Max),
                        "min" => Some(Builtin::Min),
                        _ => None,
                    };
                    let width = word.strip_prefix("bv").and_then(|digits| digits.parse::<u32>().ok());
                    match (builtin, width) {
                        (Some(_), _) if arguments.len() != 2 => {
                            let message = format!("`{word}` takes two arguments");
                            return Err(HexError::new(start.to(self.previous()), message));
                        }
                        (Some(builtin), _) => ExprKind::Builtin(builtin, arguments),
                        (None, Some(bits)) if arguments.len() == 1 && (1..=62).contains(&bits) => {
                            ExprKind::Wrap(bits, Box::new(arguments.remove(0)))
                        }
                        _ => ExprKind::Apply(self.names.intern(&word), arguments),
                    }
                } else {
                    ExprKind::Name(self.names.intern(&word))
                }
            }
            _ => return self.error("an expression"),
        };
        Ok(Expr { kind, span: start.to(self.previous()) })
    }
}

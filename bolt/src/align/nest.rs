//! Loop nests as terms of an e-graph. Loops carry their counters by name, indices stay as they were written: where a loop is
//! split or skewed, the table says how its old counter comes from the new ones. Scalars are private to the iterations of the
//! maps around them, so that loops can be exchanged and distributed without regard to where they are stored.

use super::sizes::Sizes;
use super::skeleton::Trips;
use crate::hex::printer::print_expr;
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::verify::term::Term;
use egg::{FromOp, Id, Language};
use std::collections::HashMap;
use std::fmt;

/// What the iterations of a loop of a tensor program may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// They are independent.
    Map,
    /// They are in order.
    Fold,
    /// Neither: one that a map and a fold were skewed to.
    Skewed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Head {
    pub order: Order,
    pub counter: Sym,
    pub trips: Trips,
}

/// An interned expression: a tensor's element, a constant, or a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Leaf(pub u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Nest {
    Loop(Head, [Id; 1]),
    Seq([Id; 2]),
    /// A scalar takes a value.
    Set(Sym, [Id; 1]),
    /// An element of an output takes a value.
    Store(Leaf, [Id; 1]),
    /// An element of an input, a constant, or a condition.
    Leaf(Leaf),
    Var(Sym),
    /// A number of ideal arithmetic.
    Number(i64),
    /// A function with its integer arguments, then elements.
    Apply(Sym, Vec<Leaf>, Vec<Id>),
    Builtin(Builtin, [Id; 2]),
    /// Condition, then, else.
    Select([Id; 3]),
}

impl Language for Nest {
    type Discriminant = std::mem::Discriminant<Nest>;

    fn discriminant(&self) -> Self::Discriminant {
        std::mem::discriminant(self)
    }

    fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (Nest::Loop(a, _), Nest::Loop(b, _)) => a == b,
            (Nest::Seq(_), Nest::Seq(_)) | (Nest::Select(_), Nest::Select(_)) => true,
            (Nest::Set(a, _), Nest::Set(b, _)) | (Nest::Var(a), Nest::Var(b)) => a == b,
            (Nest::Store(a, _), Nest::Store(b, _)) | (Nest::Leaf(a), Nest::Leaf(b)) => a == b,
            (Nest::Number(a), Nest::Number(b)) => a == b,
            (Nest::Apply(a, i, x), Nest::Apply(b, j, y)) => a == b && i == j && x.len() == y.len(),
            (Nest::Builtin(a, _), Nest::Builtin(b, _)) => a == b,
            _ => false,
        }
    }

    fn children(&self) -> &[Id] {
        match self {
            Nest::Loop(_, inner) | Nest::Set(_, inner) | Nest::Store(_, inner) => inner,
            Nest::Seq(pair) | Nest::Builtin(_, pair) => pair,
            Nest::Select(parts) => parts,
            Nest::Apply(_, _, parts) => parts,
            Nest::Leaf(_) | Nest::Var(_) | Nest::Number(_) => &[],
        }
    }

    fn children_mut(&mut self) -> &mut [Id] {
        match self {
            Nest::Loop(_, inner) | Nest::Set(_, inner) | Nest::Store(_, inner) => inner,
            Nest::Seq(pair) | Nest::Builtin(_, pair) => pair,
            Nest::Select(parts) => parts,
            Nest::Apply(_, _, parts) => parts,
            Nest::Leaf(_) | Nest::Var(_) | Nest::Number(_) => &mut [],
        }
    }
}

impl fmt::Display for Nest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Terms are made by lifting programs; there is no text form.
impl FromOp for Nest {
    type Error = String;

    fn from_op(op: &str, _children: Vec<Id>) -> Result<Self, String> {
        Err(op.to_owned())
    }
}

/// How a counter comes from others.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// `outer * size + inner`.
    Split { outer: Sym, inner: Sym, size: Term, ragged: bool },
    /// `(sum - minus) / stride`, where that is whole and in range.
    Skew { sum: Sym, minus: Sym, stride: i64, trips: Term },
    /// The same under another name.
    Same(Sym),
}

/// What the terms of one program share.
#[derive(Debug, Default)]
pub struct Table {
    leaves: Vec<Expr>,
    by_text: HashMap<String, Leaf>,
    pub sizes: Sizes,
    pub derived: HashMap<Sym, Vec<Derived>>,
    /// Counters of the maps around a scalar's first value, with their trips.
    pub scope: HashMap<Sym, Vec<(Sym, Term)>>,
    /// Elements that scalars hold.
    pub types: HashMap<Sym, Type>,
    /// How often a scalar is used in the program as it was.
    pub uses: HashMap<Sym, usize>,
    /// Where a scalar gets its value in the text.
    pub places: HashMap<Sym, Span>,
}

impl Table {
    pub fn leaf(&mut self, names: &Names, expr: &Expr) -> Leaf {
        let text = print_expr(names, expr);
        if let Some(leaf) = self.by_text.get(&text) {
            return *leaf;
        }
        let leaf = Leaf(u32::try_from(self.leaves.len()).expect("fewer than 2^32 expressions"));
        self.leaves.push(expr.clone());
        self.by_text.insert(text, leaf);
        leaf
    }

    #[must_use]
    pub fn expr(&self, leaf: Leaf) -> &Expr {
        &self.leaves[leaf.0 as usize]
    }

    /// All leaves there are.
    pub fn all(&self) -> impl Iterator<Item = &Expr> {
        self.leaves.iter()
    }

    /// The condition that a counter has a value.
    pub fn is_at(&mut self, names: &Names, counter: Sym, at: Term) -> Leaf {
        let boxed = |kind| Box::new(Expr { kind, span: Span::default() });
        let at = Box::new(self.sizes.expr(at));
        let kind = ExprKind::Binary(Binary::Eq, boxed(ExprKind::Name(counter)), at);
        self.leaf(names, &Expr { kind, span: Span::default() })
    }
}

/// A term as a tree: what is lowered, labelled and given the hardware's functions.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Loop { head: Head, label: Option<Sym>, body: Vec<Tree> },
    Set(Sym, Value),
    Store(Leaf, Value),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Leaf(Leaf),
    Var(Sym),
    Number(i64),
    Apply(Sym, Vec<Leaf>, Vec<Value>),
    Builtin(Builtin, Box<[Value; 2]>),
    Select(Box<[Value; 3]>),
}

impl Value {
    /// Calls `visit` for all parts, then for the whole.
    pub fn visit(&self, visit: &mut dyn FnMut(&Value)) {
        match self {
            Value::Leaf(_) | Value::Var(_) | Value::Number(_) => {}
            Value::Apply(_, _, parts) => parts.iter().for_each(|part| part.visit(visit)),
            Value::Builtin(_, parts) => parts.iter().for_each(|part| part.visit(visit)),
            Value::Select(parts) => parts.iter().for_each(|part| part.visit(visit)),
        }
        visit(self);
    }

    #[must_use]
    pub fn reads(&self, var: Sym) -> bool {
        let mut found = false;
        self.visit(&mut |part| found |= *part == Value::Var(var));
        found
    }

    /// The value with a scalar replaced.
    #[must_use]
    pub fn replace(&self, var: Sym, by: &Value) -> Value {
        let all = |parts: &[Value]| parts.iter().map(|part| part.replace(var, by)).collect::<Vec<_>>();
        match self {
            Value::Var(own) if *own == var => by.clone(),
            Value::Leaf(_) | Value::Var(_) | Value::Number(_) => self.clone(),
            Value::Apply(name, integers, parts) => Value::Apply(*name, integers.clone(), all(parts)),
            Value::Builtin(builtin, parts) => {
                Value::Builtin(*builtin, Box::new([parts[0].replace(var, by), parts[1].replace(var, by)]))
            }
            Value::Select(parts) => Value::Select(Box::new([
                parts[0].replace(var, by),
                parts[1].replace(var, by),
                parts[2].replace(var, by),
            ])),
        }
    }
}

/// A term as a tree; `node` gives the node of an id.
pub fn tree<'a>(node: &dyn Fn(Id) -> &'a Nest, at: Id, into: &mut Vec<Tree>) {
    match node(at) {
        Nest::Seq([first, second]) => {
            tree(node, *first, into);
            tree(node, *second, into);
        }
        Nest::Loop(head, [inner]) => {
            let mut body = Vec::new();
            tree(node, *inner, &mut body);
            into.push(Tree::Loop { head: *head, label: None, body });
        }
        Nest::Set(name, [inner]) => into.push(Tree::Set(*name, value(node, *inner))),
        Nest::Store(place, [inner]) => into.push(Tree::Store(*place, value(node, *inner))),
        _ => {}
    }
}

/// An element's term as a value.
pub fn value<'a>(node: &dyn Fn(Id) -> &'a Nest, at: Id) -> Value {
    match node(at) {
        Nest::Var(name) => Value::Var(*name),
        Nest::Number(number) => Value::Number(*number),
        Nest::Leaf(leaf) | Nest::Store(leaf, _) => Value::Leaf(*leaf),
        Nest::Apply(name, integers, parts) => {
            Value::Apply(*name, integers.clone(), parts.iter().map(|part| value(node, *part)).collect())
        }
        Nest::Builtin(builtin, [a, b]) => {
            Value::Builtin(*builtin, Box::new([value(node, *a), value(node, *b)]))
        }
        Nest::Select([a, b, c]) => {
            Value::Select(Box::new([value(node, *a), value(node, *b), value(node, *c)]))
        }
        Nest::Loop(..) | Nest::Seq(_) | Nest::Set(..) => Value::Number(0),
    }
}

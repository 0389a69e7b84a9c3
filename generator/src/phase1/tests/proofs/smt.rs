//! Terms as index functions in SMT-LIB: what stands at symbolic indices. Elements are of an uninterpreted sort, with an
//! uninterpreted function per elementwise operator, or numbers with the operators' meaning. Knows no rule.

use super::language::{Size, T};
use act_hlo::{Binary, ElemType, Unary};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Elements {
    /// Anything: the law moves them, and applies operators in the same way on both sides. Sums over equally many terms
    /// that are equal one by one are equal; the terms at one symbolic position stand for all of them.
    Uninterpreted,
    /// Signed words of this many bits.
    Words(u32),
    /// Integers, of which wrapping words are an image under sums and products.
    Integers,
}

pub(super) struct Reading {
    elements: Elements,
    declared: RefCell<BTreeMap<String, String>>,
    /// Positions within sums that have been used, named by how deep the sum is nested, and the lengths they are within.
    positions: RefCell<BTreeSet<(String, String)>>,
    depth: RefCell<usize>,
}

impl Reading {
    pub(super) fn new(elements: Elements) -> Reading {
        Reading {
            elements,
            declared: RefCell::default(),
            positions: RefCell::default(),
            depth: RefCell::new(0),
        }
    }

    fn sort(&self) -> String {
        match self.elements {
            Elements::Uninterpreted => "E".to_owned(),
            Elements::Words(bits) => format!("(_ BitVec {bits})"),
            Elements::Integers => "Int".to_owned(),
        }
    }

    fn declare(&self, name: &str, arguments: &str) -> String {
        let text = format!("(declare-fun {name} ({arguments}) {})", self.sort());
        let before = self.declared.borrow_mut().insert(name.to_owned(), text.clone());
        assert!(before.is_none_or(|b| b == text), "{name} is used in two ways");
        name.to_owned()
    }

    /// Declarations for everything that has been read so far; `indices` and sizes are the caller's.
    pub(super) fn declarations(&self) -> String {
        let sort = if self.elements == Elements::Uninterpreted { "(declare-sort E 0)\n" } else { "" };
        let functions: Vec<String> = self.declared.borrow().values().cloned().collect();
        let positions: Vec<String> =
            self.positions.borrow().iter().map(|(p, _)| format!("(declare-const {p} Int)")).collect();
        let positions: BTreeSet<String> = positions.into_iter().collect();
        format!("{sort}{}\n{}\n", functions.join("\n"), Vec::from_iter(positions).join("\n"))
    }

    /// That positions lie within their sums, in terms of sizes; sums have at least one term.
    pub(super) fn within(&self) -> String {
        let positions = self.positions.borrow();
        let range = |(p, len): &(String, String)| format!("(assert (and (<= 0 {p}) (< {p} {len})))\n");
        positions.iter().map(range).collect()
    }

    fn apply(&self, name: &str, arguments: &[String]) -> String {
        self.declare(name, &vec![self.sort(); arguments.len()].join(" "));
        format!("({name} {})", arguments.join(" "))
    }

    fn literal(&self, value: i64) -> String {
        match self.elements {
            Elements::Uninterpreted => self.declare(&format!("number{value}").replace('-', "_"), ""),
            Elements::Words(bits) => format!("(_ bv{} {bits})", (value as u64) & (u64::MAX >> (64 - bits))),
            Elements::Integers => Size::Number(value).smt(),
        }
    }

    fn unary(&self, op: Unary, x: String) -> String {
        match (self.elements, op) {
            (Elements::Uninterpreted, _) => self.apply(&format!("f_{}", op.name()), &[x]),
            (Elements::Integers, Unary::Negate) => format!("(- {x})"),
            (_, Unary::Negate) => format!("(bvneg {x})"),
            (_, Unary::Not) => format!("(bvnot {x})"),
            (_, Unary::Abs) => format!("(ite (bvslt {x} {}) (bvneg {x}) {x})", self.literal(0)),
            _ => panic!("{} of words", op.name()),
        }
    }

    fn binary(&self, op: Binary, a: String, b: String) -> String {
        if self.elements == Elements::Uninterpreted {
            return self.apply(&format!("f_{}", op.name()), &[a, b]);
        }
        if self.elements == Elements::Integers {
            let name = match op {
                Binary::Add => "+",
                Binary::Subtract => "-",
                Binary::Multiply => "*",
                _ => panic!("{} of integers", op.name()),
            };
            return format!("({name} {a} {b})");
        }
        let name = match op {
            Binary::Add => "bvadd",
            Binary::Subtract => "bvsub",
            Binary::Multiply => "bvmul",
            Binary::And => "bvand",
            Binary::Or => "bvor",
            Binary::Xor => "bvxor",
            Binary::Maximum => return format!("(ite (bvsge {a} {b}) {a} {b})"),
            Binary::Minimum => return format!("(ite (bvsle {a} {b}) {a} {b})"),
            _ => panic!("{} of words", op.name()),
        };
        format!("({name} {a} {b})")
    }

    /// The element of a term at these indices.
    pub(super) fn at(&self, term: &T, index: &[String]) -> String {
        match term {
            T::Input(name, _) => {
                self.declare(name, &vec!["Int"; index.len()].join(" "));
                if index.is_empty() { (*name).to_owned() } else { format!("({name} {})", index.join(" ")) }
            }
            T::Splat(value, _) => self.literal(*value),
            T::Slice(x, ranges) => {
                let from =
                    index.iter().zip(ranges).map(|(i, (s, _, p))| format!("(+ {} (* {p} {i}))", s.smt()));
                self.at(x, &from.collect::<Vec<_>>())
            }
            T::Transpose(x, perm) => {
                let mut from = vec![String::new(); perm.len()];
                perm.iter().zip(index).for_each(|(&p, i)| from[p].clone_from(i));
                self.at(x, &from)
            }
            T::Reverse(x, over) => {
                let dims = x.dims();
                let from = index.iter().enumerate().map(|(d, i)| {
                    if over.contains(&d) { format!("(- (- {} 1) {i})", dims[d].smt()) } else { i.clone() }
                });
                self.at(x, &from.collect::<Vec<_>>())
            }
            T::Concatenate(dim, parts) => {
                let mut starts = vec!["0".to_owned()];
                for part in parts {
                    let last = starts.last().cloned().unwrap_or_default();
                    starts.push(format!("(+ {last} {})", part.dims()[*dim].smt()));
                }
                let within = |k: usize| {
                    let mut from = index.to_vec();
                    from[*dim] = format!("(- {} {})", index[*dim], starts[k]);
                    self.at(&parts[k], &from)
                };
                let last = within(parts.len() - 1);
                (0..parts.len() - 1).rev().fold(last, |rest, k| {
                    format!("(ite (< {} {}) {} {rest})", index[*dim], starts[k + 1], within(k))
                })
            }
            T::Broadcast(x, at, _) => {
                let from: Vec<String> = at.iter().map(|&d| index[d].clone()).collect();
                self.at(x, &from)
            }
            T::Reshape(x, dims) => self.at(x, &reshaped(&x.dims(), dims, index)),
            T::Unary(op, x) => self.unary(*op, self.at(x, index)),
            T::Binary(op, a, b) => self.binary(*op, self.at(a, index), self.at(b, index)),
            T::Clamp(low, x, high) => {
                let [low, high] =
                    [low, high].map(|b| self.at(b, if b.dims().is_empty() { &[] } else { index }));
                let x = self.at(x, index);
                if self.elements == Elements::Uninterpreted {
                    return self.apply("f_clamp", &[low, x, high]);
                }
                let least = self.binary(Binary::Maximum, x, low);
                self.binary(Binary::Minimum, least, high)
            }
            T::Convert(elem, x) => self.convert(*elem, self.at(x, index)),
            T::Bits(elem, parts, x) => {
                let (of, part) = match parts {
                    Some(_) => (&index[..index.len() - 1], index[index.len() - 1].clone()),
                    None => (index, "0".to_owned()),
                };
                let name = format!("bits_{}", elem.name());
                self.declare(&name, &format!("{} Int", self.sort()));
                format!("({name} {} {part})", self.at(x, of))
            }
            T::Dot(dims, a, b) => {
                let (ra, rb) = (a.dims(), b.dims());
                let lens: Vec<Size> = dims.lhs_contracting.iter().map(|&d| ra[d].clone()).collect();
                self.folded(Binary::Add, &lens, "zero", |k| {
                    let mut left = vec![String::new(); ra.len()];
                    let mut right = vec![String::new(); rb.len()];
                    let mut next = index.iter();
                    for (&l, &r) in dims.lhs_batch.iter().zip(&dims.rhs_batch) {
                        let i = next.next().cloned().unwrap_or_default();
                        left[l].clone_from(&i);
                        right[r] = i;
                    }
                    dims.lhs_contracting.iter().zip(k).for_each(|(&d, k)| left[d].clone_from(k));
                    dims.rhs_contracting.iter().zip(k).for_each(|(&d, k)| right[d].clone_from(k));
                    let mut fill = |side: &mut Vec<String>| {
                        let open = side.iter_mut().filter(|i| i.is_empty());
                        open.for_each(|i| *i = next.next().cloned().unwrap_or_default());
                    };
                    fill(&mut left);
                    fill(&mut right);
                    self.binary(Binary::Multiply, self.at(a, &left), self.at(b, &right))
                })
            }
            T::Reduce(op, over, x, init) => {
                let dims = x.dims();
                let lens: Vec<Size> = over.iter().map(|&d| dims[d].clone()).collect();
                let init = self.at(init, &[]);
                self.folded(*op, &lens, &init, |k| {
                    let (mut kept, mut gone) = (index.iter(), k.iter());
                    let from = (0..dims.len()).map(|d| {
                        let next = if over.contains(&d) { gone.next() } else { kept.next() };
                        next.cloned().unwrap_or_default()
                    });
                    self.at(x, &from.collect::<Vec<_>>())
                })
            }
        }
    }

    fn convert(&self, elem: ElemType, x: String) -> String {
        match self.elements {
            Elements::Uninterpreted => self.apply(&format!("f_convert_{}", elem.name()), &[x]),
            Elements::Integers => panic!("integers have one type"),
            // A value kept in wide words: what the narrow signed type holds of it.
            Elements::Words(bits) => {
                let narrow = elem.bits();
                let low = format!("((_ extract {} 0) {x})", narrow - 1);
                let kind = if elem.is_signed_int() { "sign" } else { "zero" };
                format!("((_ {kind}_extend {}) {low})", bits - narrow)
            }
        }
    }

    /// All terms of a sum in their order, combined: written out for numbers, whose sums have a fixed length.
    fn folded(&self, op: Binary, lens: &[Size], init: &str, term: impl Fn(&[String]) -> String) -> String {
        if self.elements != Elements::Uninterpreted {
            let mut positions: Vec<Vec<String>> = vec![Vec::new()];
            for len in lens {
                let len = len.number().expect("sums of numbers have a fixed length");
                let longer = |p: &Vec<String>| {
                    (0..len).map(|k| [p.clone(), vec![k.to_string()]].concat()).collect::<Vec<_>>()
                };
                positions = positions.iter().flat_map(longer).collect();
            }
            let init = if init == "zero" { self.literal(0) } else { init.to_owned() };
            return positions.iter().fold(init, |sum, k| self.binary(op, sum, term(k)));
        }
        let depth = *self.depth.borrow();
        let at: Vec<String> = (0..lens.len()).map(|k| format!("k{depth}_{k}")).collect();
        let ranges = at.iter().cloned().zip(lens.iter().map(Size::smt));
        self.positions.borrow_mut().extend(ranges);
        *self.depth.borrow_mut() += 1;
        let term = term(&at);
        *self.depth.borrow_mut() -= 1;
        let name = format!("fold_{}_{}", op.name(), lens.len());
        let arguments = [vec!["Int"; lens.len()].join(" "), format!("{0} {0}", self.sort())].join(" ");
        self.declare(&name, &arguments);
        let init = if init == "zero" { self.literal(0) } else { init.to_owned() };
        let lens: Vec<String> = lens.iter().map(Size::smt).collect();
        format!("({name} {} {init} {term})", lens.join(" "))
    }
}

/// Indices of the operand of a reshape. Dimensions of size 1 come and go at any sizes; else the sizes are numbers.
fn reshaped(from: &[Size], to: &[Size], index: &[String]) -> Vec<String> {
    let long = |dims: &[Size]| (0..dims.len()).filter(|&d| dims[d] != Size::Number(1)).collect::<Vec<_>>();
    let (a, b) = (long(from), long(to));
    if a.len() == b.len() && a.iter().zip(&b).all(|(&i, &j)| from[i] == to[j]) {
        let mut indices = vec!["0".to_owned(); from.len()];
        a.iter().zip(&b).for_each(|(&i, &j)| indices[i].clone_from(&index[j]));
        return indices;
    }
    let number = |s: &Size| s.number().expect("a general reshape is stated at fixed sizes");
    let flat = index
        .iter()
        .zip(to)
        .fold("0".to_owned(), |sum, (i, len)| format!("(+ (* {sum} {}) {i})", number(len)));
    let mut step: i64 = from.iter().map(number).product();
    from.iter()
        .map(|len| {
            let len = number(len);
            step /= len;
            format!("(mod (div {flat} {step}) {len})")
        })
        .collect()
}

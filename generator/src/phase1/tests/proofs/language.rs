//! The language in which laws are stated for their proofs: tensor terms whose sizes and positions are formulas over named
//! integers. A term has two readings: index functions for a solver (`smt.rs`) and a kernel at given sizes (`concrete.rs`).
//! Knows no rule.

use act_hlo::{Binary, DotDims, ElemType, Unary};
use std::collections::BTreeMap;
use std::ops::{Add, Mul, Sub};

/// A size or position.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Size {
    Number(i64),
    Named(&'static str),
    Sum(Box<Size>, Box<Size>),
    Difference(Box<Size>, Box<Size>),
    Product(Box<Size>, Box<Size>),
}

/// A named size.
pub(super) fn v(name: &'static str) -> Size {
    Size::Named(name)
}

pub(super) fn n(number: i64) -> Size {
    Size::Number(number)
}

impl Add for Size {
    type Output = Size;
    fn add(self, other: Size) -> Size {
        Size::Sum(Box::new(self), Box::new(other))
    }
}

impl Sub for Size {
    type Output = Size;
    fn sub(self, other: Size) -> Size {
        Size::Difference(Box::new(self), Box::new(other))
    }
}

impl Mul for Size {
    type Output = Size;
    fn mul(self, other: Size) -> Size {
        Size::Product(Box::new(self), Box::new(other))
    }
}

impl Size {
    pub(super) fn smt(&self) -> String {
        match self {
            Size::Number(k) if *k < 0 => format!("(- {})", -k),
            Size::Number(k) => k.to_string(),
            Size::Named(name) => (*name).to_owned(),
            Size::Sum(a, b) => format!("(+ {} {})", a.smt(), b.smt()),
            Size::Difference(a, b) => format!("(- {} {})", a.smt(), b.smt()),
            Size::Product(a, b) => format!("(* {} {})", a.smt(), b.smt()),
        }
    }

    pub(super) fn at(&self, sizes: &BTreeMap<&str, i64>) -> i64 {
        match self {
            Size::Number(k) => *k,
            Size::Named(name) => *sizes.get(name).unwrap_or_else(|| panic!("{name} has no value")),
            Size::Sum(a, b) => a.at(sizes) + b.at(sizes),
            Size::Difference(a, b) => a.at(sizes) - b.at(sizes),
            Size::Product(a, b) => a.at(sizes) * b.at(sizes),
        }
    }

    /// The value of a size without names.
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Size::Number(k) => Some(*k),
            Size::Named(_) => None,
            Size::Sum(a, b) => Some(a.number()? + b.number()?),
            Size::Difference(a, b) => Some(a.number()? - b.number()?),
            Size::Product(a, b) => Some(a.number()? * b.number()?),
        }
    }
}

/// A tensor term. Elements have one type per law, but for `Bits`.
#[derive(Clone, Debug)]
pub(super) enum T {
    Input(&'static str, Vec<Size>),
    /// Every element is this number.
    Splat(i64, Vec<Size>),
    /// Start, length and stride per dimension.
    Slice(Box<T>, Vec<(Size, Size, i64)>),
    Transpose(Box<T>, Vec<usize>),
    Reverse(Box<T>, Vec<usize>),
    Concatenate(usize, Vec<T>),
    Broadcast(Box<T>, Vec<usize>, Vec<Size>),
    Reshape(Box<T>, Vec<Size>),
    Unary(Unary, Box<T>),
    Binary(Binary, Box<T>, Box<T>),
    /// `clamp(low, x, high)`, scalar bounds.
    Clamp(Box<T>, Box<T>, Box<T>),
    Convert(ElemType, Box<T>),
    /// The bits in another type; a last dimension of this many parts appears.
    Bits(ElemType, Option<i64>, Box<T>),
    Dot(DotDims, Box<T>, Box<T>),
    /// With the combiner's neutral value, or that scalar, first.
    Reduce(Binary, Vec<usize>, Box<T>, Box<T>),
}

pub(super) fn input(name: &'static str, dims: &[Size]) -> T {
    T::Input(name, dims.to_vec())
}

pub(super) fn scalar(name: &'static str) -> T {
    T::Input(name, Vec::new())
}

pub(super) fn cat(dim: usize, parts: &[T]) -> T {
    T::Concatenate(dim, parts.to_vec())
}

pub(super) fn dot(a: T, b: T) -> T {
    T::Dot(DotDims::matmul(), Box::new(a), Box::new(b))
}

impl T {
    pub(super) fn dims(&self) -> Vec<Size> {
        match self {
            T::Input(_, dims) | T::Splat(_, dims) | T::Broadcast(_, _, dims) | T::Reshape(_, dims) => {
                dims.clone()
            }
            T::Slice(_, ranges) => ranges.iter().map(|r| r.1.clone()).collect(),
            T::Transpose(x, perm) => perm.iter().map(|&p| x.dims()[p].clone()).collect(),
            T::Reverse(x, _) | T::Unary(_, x) | T::Binary(_, x, _) | T::Clamp(_, x, _) | T::Convert(_, x) => {
                x.dims()
            }
            T::Concatenate(dim, parts) => {
                let mut dims = parts[0].dims();
                dims[*dim] =
                    parts[1..].iter().fold(dims[*dim].clone(), |sum, p| sum + p.dims()[*dim].clone());
                dims
            }
            T::Bits(_, parts, x) => {
                let mut dims = x.dims();
                dims.extend(parts.map(n));
                dims
            }
            T::Dot(dims, a, b) => {
                let (da, db) = (a.dims(), b.dims());
                let free = |all: &[Size], batch: &[usize], contracting: &[usize]| {
                    let kept = (0..all.len()).filter(|d| !batch.contains(d) && !contracting.contains(d));
                    kept.map(|d| all[d].clone()).collect::<Vec<_>>()
                };
                let batch = dims.lhs_batch.iter().map(|&d| da[d].clone()).collect();
                [
                    batch,
                    free(&da, &dims.lhs_batch, &dims.lhs_contracting),
                    free(&db, &dims.rhs_batch, &dims.rhs_contracting),
                ]
                .concat()
            }
            T::Reduce(_, over, x, _) => {
                x.dims().into_iter().enumerate().filter(|(d, _)| !over.contains(d)).map(|d| d.1).collect()
            }
        }
    }

    pub(super) fn operands(&self) -> Vec<&T> {
        match self {
            T::Input(..) | T::Splat(..) => Vec::new(),
            T::Slice(x, _)
            | T::Transpose(x, _)
            | T::Reverse(x, _)
            | T::Broadcast(x, _, _)
            | T::Reshape(x, _)
            | T::Unary(_, x)
            | T::Convert(_, x)
            | T::Bits(_, _, x) => vec![x],
            T::Binary(_, x, y) | T::Dot(_, x, y) | T::Reduce(_, _, x, y) => vec![x, y],
            T::Clamp(x, y, z) => vec![x, y, z],
            T::Concatenate(_, parts) => parts.iter().collect(),
        }
    }

    pub(super) fn slice(self, ranges: &[(Size, Size)]) -> T {
        T::Slice(Box::new(self), ranges.iter().map(|(s, l)| (s.clone(), l.clone(), 1)).collect())
    }

    pub(super) fn transpose(self, perm: &[usize]) -> T {
        T::Transpose(Box::new(self), perm.to_vec())
    }

    pub(super) fn reverse(self, over: &[usize]) -> T {
        T::Reverse(Box::new(self), over.to_vec())
    }

    pub(super) fn broadcast(self, at: &[usize], dims: &[Size]) -> T {
        T::Broadcast(Box::new(self), at.to_vec(), dims.to_vec())
    }

    pub(super) fn reshape(self, dims: &[Size]) -> T {
        T::Reshape(Box::new(self), dims.to_vec())
    }

    pub(super) fn unary(self, op: Unary) -> T {
        T::Unary(op, Box::new(self))
    }

    pub(super) fn binary(self, op: Binary, other: T) -> T {
        T::Binary(op, Box::new(self), Box::new(other))
    }

    pub(super) fn sum(self, over: &[usize]) -> T {
        T::Reduce(Binary::Add, over.to_vec(), Box::new(self), Box::new(T::Splat(0, Vec::new())))
    }

    pub(super) fn convert(self, elem: ElemType) -> T {
        T::Convert(elem, Box::new(self))
    }
}

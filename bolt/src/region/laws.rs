//! The laws that terms are compared by, each with its standing: proved by a solver in the run that uses it, permitted by
//! the numerics policy, or a property of the method. Knows no terms.

use crate::solver::{Solver, Verdict};
use std::fmt;
use std::time::Duration;

/// A law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// Terms are compared by digests.
    Digest,
    Ring,
    Commutes,
    Widening,
    Truncation,
    WholeFloat,
    BoundedFloat,
    Saturation,
    FloatSaturation,
    Bounds,
    Extremum,
    Monotone,
    Reassociation,
    FloatIdentity,
    Fused,
    Reciprocal,
    ExcessPrecision,
    RealAlgebra,
}

/// A set of laws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Laws(u32);

impl Laws {
    pub(super) fn insert(&mut self, law: Law) {
        self.0 |= 1 << law as u32;
    }

    /// In their order.
    pub(super) fn iter(self) -> impl Iterator<Item = Law> {
        Law::ALL.into_iter().filter(move |&law| self.0 >> law as u32 & 1 == 1)
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Digest => {
                "terms are compared by 122-bit digests: sums and products at a random point of a finite field"
            }
            Law::Ring => "integers of n bits are a commutative ring",
            Law::Commutes => "a sum, product, maximum or minimum of two does not depend on their order",
            Law::Widening => "widening an integer keeps its value",
            Law::Truncation => "the low bits of sums and products of integers are those of the low bits",
            Law::WholeFloat => {
                "an integer of at most 16 bits is the same number as a float: rounding to integers, a product with 1, \
                 bounds of its type and the way back change nothing"
            }
            Law::BoundedFloat => {
                "an integer as a float is whole, and between integers that the float type has it is the integer so bounded"
            }
            Law::Saturation => "an integer between bounds of a narrower type may be bounded after its conversion",
            Law::FloatSaturation => {
                "a float becomes an integer of less than 32 bits as it becomes one of 32, saturated (semantics of convert)"
            }
            Law::Bounds => "bounds within bounds are bounds",
            Law::Extremum => "a maximum or minimum of several does not depend on their order",
            Law::Monotone => {
                "a monotone function of a bounded value is bounded by its values at the bounds (conversion, rounding, \
                 product and sum with a constant)"
            }
            Law::Reassociation => "sums of floats in any order (policy)",
            Law::FloatIdentity => "x + 0 and x * 1 are x, but for the sign of zero and denormals (policy)",
            Law::Fused => "a product and a sum may be fused (policy)",
            Law::Reciprocal => "x / y is x * (1 / y) (policy)",
            Law::ExcessPrecision => "roundings to a narrower float between operators may be left out (policy)",
            Law::RealAlgebra => "floats are real numbers (policy)",
        })
    }
}

impl Law {
    pub(super) const ALL: [Law; 18] = [
        Law::Digest,
        Law::Ring,
        Law::Commutes,
        Law::Widening,
        Law::Truncation,
        Law::WholeFloat,
        Law::BoundedFloat,
        Law::Saturation,
        Law::FloatSaturation,
        Law::Bounds,
        Law::Extremum,
        Law::Monotone,
        Law::Reassociation,
        Law::FloatIdentity,
        Law::Fused,
        Law::Reciprocal,
        Law::ExcessPrecision,
        Law::RealAlgebra,
    ];

    /// A script that is unsatisfiable if the law holds; none where there is nothing to prove.
    pub fn script(self) -> Option<String> {
        let script = match self {
            Law::Digest
            | Law::FloatSaturation
            | Law::Reassociation
            | Law::FloatIdentity
            | Law::Fused
            | Law::Reciprocal
            | Law::ExcessPrecision
            | Law::RealAlgebra => return None,
            Law::Ring => RING,
            Law::Commutes => COMMUTES,
            Law::Widening => WIDENING,
            Law::Truncation => TRUNCATION,
            Law::WholeFloat => WHOLE_FLOAT,
            Law::BoundedFloat => BOUNDED_FLOAT,
            Law::Saturation => SATURATION,
            Law::Bounds => BOUNDS,
            Law::Extremum => EXTREMUM,
            Law::Monotone => MONOTONE,
        };
        Some(format!("; {self}\n; unsat: it holds\n{script}"))
    }

    /// Proves the law.
    ///
    /// # Errors
    /// What the solver says instead.
    pub fn prove(self, solver: &Solver, limit: Duration) -> Result<(), String> {
        let Some(script) = self.script() else { return Ok(()) };
        match solver.check(&script, limit) {
            Ok(Verdict::Unsatisfiable) => Ok(()),
            Ok(Verdict::Satisfiable { model }) => Err(format!("it is wrong: {model}")),
            Ok(Verdict::Unknown { reason }) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }
}

const RING: &str =
    "(declare-const x (_ BitVec 32)) (declare-const y (_ BitVec 32)) (declare-const z (_ BitVec 32))
(assert (not (and
  (= (bvadd x y) (bvadd y x)) (= (bvadd (bvadd x y) z) (bvadd x (bvadd y z)))
  (= (bvmul x y) (bvmul y x)) (= (bvmul (bvmul x y) z) (bvmul x (bvmul y z)))
  (= (bvmul x (bvadd y z)) (bvadd (bvmul x y) (bvmul x z)))
  (= (bvadd x #x00000000) x) (= (bvmul x #x00000001) x) (= (bvmul x #x00000000) #x00000000)
  (= (bvsub x y) (bvadd x (bvneg y))) (= (bvnot x) (bvsub #xffffffff x))
  (= (bvshl x #x00000003) (bvmul x #x00000008)))))
";

// The smallest floats that have every kind of value.
const COMMUTES: &str = "(declare-const x (_ FloatingPoint 3 4)) (declare-const y (_ FloatingPoint 3 4))
(declare-const a (_ BitVec 16)) (declare-const b (_ BitVec 16))
(assert (not (and
  (= (fp.add RNE x y) (fp.add RNE y x)) (= (fp.mul RNE x y) (fp.mul RNE y x))
  (= (bvand a b) (bvand b a)) (= (bvor a b) (bvor b a)) (= (bvxor a b) (bvxor b a)))))
";

const WIDENING: &str = "(declare-const x (_ BitVec 8))
(assert (not (and
  (= ((_ sign_extend 24) x) ((_ sign_extend 16) ((_ sign_extend 8) x)))
  (= ((_ zero_extend 24) x) ((_ zero_extend 16) ((_ zero_extend 8) x)))
  (= ((_ zero_extend 24) x) ((_ sign_extend 16) ((_ zero_extend 8) x)))
  (= ((_ extract 7 0) ((_ sign_extend 24) x)) x)
  (= ((_ extract 15 0) ((_ sign_extend 24) x)) ((_ sign_extend 8) x)))))
";

const TRUNCATION: &str = "(declare-const x (_ BitVec 32)) (declare-const y (_ BitVec 32))
(define-fun low ((v (_ BitVec 32))) (_ BitVec 8) ((_ extract 7 0) v))
(assert (not (and
  (= (low (bvadd x y)) (bvadd (low x) (low y))) (= (low (bvsub x y)) (bvsub (low x) (low y)))
  (= (low (bvmul x y)) (bvmul (low x) (low y))) (= (low (bvnot x)) (bvnot (low x)))
  (= (low x) ((_ extract 7 0) ((_ extract 15 0) x))))))
";

// All integers of 8 bits in a float of 16.
const WHOLE_FLOAT: &str = "(declare-const x (_ BitVec 8))
(define-fun f () (_ FloatingPoint 5 11) ((_ to_fp 5 11) RNE x))
(assert (not (and
  (= ((_ fp.to_sbv 8) RTZ f) x) (= (fp.mul RNE f ((_ to_fp 5 11) RNE 1.0)) f)
  (= (fp.roundToIntegral RNE f) f) (= (fp.roundToIntegral RNA f) f)
  (= (fp.roundToIntegral RTN f) f) (= (fp.roundToIntegral RTP f) f)
  (fp.leq ((_ to_fp 5 11) RNE (- 128.0)) f) (fp.leq f ((_ to_fp 5 11) RNE 127.0)))))
";

// Integers of 8 bits in a float of 8, which has those up to 16.
const BOUNDED_FLOAT: &str = "(declare-const x (_ BitVec 8)) (declare-const l (_ BitVec 8)) (declare-const h (_ BitVec 8))
(define-fun f ((v (_ BitVec 8))) (_ FloatingPoint 4 4) ((_ to_fp 4 4) RNE v))
(define-fun larger ((a (_ FloatingPoint 4 4)) (b (_ FloatingPoint 4 4))) (_ FloatingPoint 4 4) (ite (fp.lt a b) b a))
(define-fun smaller ((a (_ FloatingPoint 4 4)) (b (_ FloatingPoint 4 4))) (_ FloatingPoint 4 4) (ite (fp.lt b a) b a))
(define-fun low8 ((v (_ BitVec 8)) (b (_ BitVec 8))) (_ BitVec 8) (ite (bvslt v b) b v))
(define-fun high8 ((v (_ BitVec 8)) (b (_ BitVec 8))) (_ BitVec 8) (ite (bvslt b v) b v))
(assert (and (bvsle #xf0 l) (bvsle l h) (bvsle h #x10)))
(assert (not (and
  (= (fp.mul RNE (f x) ((_ to_fp 4 4) RNE 1.0)) (f x))
  (= (fp.roundToIntegral RNE (f x)) (f x)) (= (fp.roundToIntegral RNA (f x)) (f x))
  (= (fp.roundToIntegral RTN (f x)) (f x)) (= (fp.roundToIntegral RTP (f x)) (f x))
  (= ((_ fp.to_sbv 8) RTZ (smaller (larger (f x) (f l)) (f h))) (high8 (low8 x l) h)))))
";

const SATURATION: &str =
    "(declare-const x (_ BitVec 32)) (declare-const l (_ BitVec 8)) (declare-const h (_ BitVec 8))
(define-fun wide ((v (_ BitVec 8))) (_ BitVec 32) ((_ sign_extend 24) v))
(define-fun low32 ((v (_ BitVec 32)) (b (_ BitVec 32))) (_ BitVec 32) (ite (bvslt v b) b v))
(define-fun high32 ((v (_ BitVec 32)) (b (_ BitVec 32))) (_ BitVec 32) (ite (bvslt b v) b v))
(define-fun low8 ((v (_ BitVec 8)) (b (_ BitVec 8))) (_ BitVec 8) (ite (bvslt v b) b v))
(define-fun high8 ((v (_ BitVec 8)) (b (_ BitVec 8))) (_ BitVec 8) (ite (bvslt b v) b v))
(assert (bvsle l h))
(assert (distinct
  ((_ extract 7 0) (high32 (low32 x (wide l)) (wide h)))
  (high8 (low8 ((_ extract 7 0) (high32 (low32 x (wide #x80)) (wide #x7f))) l) h)))
";

// Over any linear order; the integers have every finite pattern of one.
const BOUNDS: &str = "(declare-const x Int) (declare-const y Int) (declare-const l Int) (declare-const h Int) (declare-const c Int)
(define-fun larger ((a Int) (b Int)) Int (ite (< a b) b a))
(define-fun smaller ((a Int) (b Int)) Int (ite (< b a) b a))
(assert (<= l h))
(assert (not (and
  (= (larger (smaller (larger x l) h) c) (smaller (larger x (larger l c)) (larger h c)))
  (= (smaller (smaller (larger x l) h) c) (smaller (larger x (smaller l c)) (smaller h c)))
  (= (larger (larger x l) y) (larger (larger x y) l))
  (= (smaller (smaller x h) y) (smaller (smaller x y) h)))))
";

const EXTREMUM: &str = "(declare-const x Int) (declare-const y Int) (declare-const z Int)
(define-fun larger ((a Int) (b Int)) Int (ite (< a b) b a))
(define-fun smaller ((a Int) (b Int)) Int (ite (< b a) b a))
(assert (not (and
  (= (larger x y) (larger y x)) (= (larger (larger x y) z) (larger x (larger y z)))
  (= (smaller x y) (smaller y x)) (= (smaller (smaller x y) z) (smaller x (smaller y z))))))
";

// f rises between the three points that matter, g falls.
const MONOTONE: &str = "(declare-fun f (Int) Int) (declare-fun g (Int) Int)
(declare-const x Int) (declare-const l Int) (declare-const h Int)
(define-fun larger ((a Int) (b Int)) Int (ite (< a b) b a))
(define-fun smaller ((a Int) (b Int)) Int (ite (< b a) b a))
(assert (<= l h))
(assert (and (=> (<= x l) (<= (f x) (f l))) (=> (<= l x) (<= (f l) (f x))) (=> (<= x h) (<= (f x) (f h)))
  (=> (<= h x) (<= (f h) (f x))) (<= (f l) (f h))))
(assert (and (=> (<= x l) (>= (g x) (g l))) (=> (<= l x) (>= (g l) (g x))) (=> (<= x h) (>= (g x) (g h)))
  (=> (<= h x) (>= (g h) (g x))) (>= (g l) (g h))))
(assert (not (and
  (= (f (smaller (larger x l) h)) (smaller (larger (f x) (f l)) (f h)))
  (= (g (smaller (larger x l) h)) (smaller (larger (g x) (g h)) (g l))))))
";

//! Tables by operator and type, read for every rule and e-node: an operator's name is looked up as a number, since
//! comparing names took a tenth of exploration. Knows neither instructions nor rules.

use act_hlo::ElemType;
use std::collections::BTreeMap;

/// The number of an operator's name (FNV-1a, 64 bits); a test sees that all names have numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperatorNumber(u64);

impl OperatorNumber {
    pub(crate) fn of(name: &str) -> OperatorNumber {
        const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        OperatorNumber(
            name.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)),
        )
    }
}

/// What is known of operators on types.
#[derive(Clone, Debug)]
pub(crate) struct OperatorTable<T>(BTreeMap<(OperatorNumber, ElemType), T>);

impl<T> Default for OperatorTable<T> {
    fn default() -> OperatorTable<T> {
        OperatorTable(BTreeMap::new())
    }
}

impl<T: Default> OperatorTable<T> {
    pub(crate) fn entry(&mut self, name: &str, elem: ElemType) -> &mut T {
        self.0.entry((OperatorNumber::of(name), elem)).or_default()
    }
}

impl<T> OperatorTable<T> {
    pub(crate) fn get(&self, name: &str, elem: ElemType) -> Option<&T> {
        self.0.get(&(OperatorNumber::of(name), elem))
    }

    pub(crate) fn has(&self, name: &str, elem: ElemType) -> bool {
        self.0.contains_key(&(OperatorNumber::of(name), elem))
    }

    /// The types of an operator.
    pub(crate) fn types(&self, name: &str) -> impl Iterator<Item = ElemType> + use<'_, T> {
        let number = OperatorNumber::of(name);
        let [first, .., last] = ElemType::ALL;
        self.0.range((number, first)..=(number, last)).map(|((_, elem), _)| *elem)
    }

    /// What is known of all operators but these.
    pub(crate) fn of_others(&self, names: &[&str]) -> impl Iterator<Item = &T> {
        let numbers: Vec<OperatorNumber> = names.iter().map(|name| OperatorNumber::of(name)).collect();
        self.0.iter().filter(move |((number, _), _)| !numbers.contains(number)).map(|(_, known)| known)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::{Binary, Unary};

    #[test]
    fn every_operator_has_a_number_of_its_own() {
        let mut names: Vec<String> = Unary::ALL.iter().map(|op| op.name().to_owned()).collect();
        names.extend(
            Binary::ALL.iter().flat_map(|op| [op.name().to_owned(), format!("reduce {}", op.name())]),
        );
        names.extend(
            [
                "parameter",
                "constant",
                "iota",
                "eye",
                "compare",
                "select",
                "clamp",
                "fma",
                "convert",
                "bitcast-convert",
                "copy",
                "reduce-precision",
                "broadcast",
                "reshape",
                "transpose",
                "slice",
                "dynamic-slice",
                "dynamic-update-slice",
                "pad",
                "reverse",
                "concatenate",
                "reduce",
                "dot",
            ]
            .map(str::to_owned),
        );
        let all = names.len();
        let mut numbers: Vec<OperatorNumber> = names.iter().map(|name| OperatorNumber::of(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }

    #[test]
    fn the_types_of_an_operator_are_those_that_were_entered() {
        let mut table: OperatorTable<()> = OperatorTable::default();
        for elem in [ElemType::C128, ElemType::S8, ElemType::Pred] {
            table.entry("add", elem);
        }
        table.entry("subtract", ElemType::F32);
        assert_eq!(table.types("add").collect::<Vec<_>>(), [ElemType::Pred, ElemType::S8, ElemType::C128]);
        assert!(table.has("subtract", ElemType::F32) && !table.has("subtract", ElemType::S8));
        assert_eq!(table.types("multiply").count(), 0);
    }
}

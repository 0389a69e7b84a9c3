//! Stitched text as the compiler dumped it, judged from outside: right, wrong on purpose, and marked with lies.

mod fixture;
mod mutants;
mod verdicts;

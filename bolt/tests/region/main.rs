//! Stitched text as the compiler dumped it, judged from outside: right, wrong on purpose, and marked with lies.

mod fences;
mod fixture;
mod hex;
mod mutants;
mod verdicts;

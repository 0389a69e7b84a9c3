//! Gemmini's default configuration, from gemmini.h, LocalAddr.scala and libgemmini: its commands on memories of its own.
//! Weight-stationary products only, loads without a scale, no pooling. Knows no description.

use crate::riscv::{self, Accelerator};

const DIM: usize = 16;
const TABLE: u64 = 0x100;
const FIRST: u64 = 0x4000;

struct Load {
    stride: u64,
    shrunk: bool,
    block: usize,
}

struct Gemmini {
    spad: Vec<[i8; DIM]>,
    acc: Vec<[i32; DIM]>,
    loads: [Load; 3],
    store_stride: u64,
    scale: f32,
    relu: bool,
    preloaded: (u64, u64),
    /// bounds, addresses AB and DC, strides AB and DC.
    looping: [(u64, u64); 5],
    flushed: bool,
}

/// rows, columns and local address of an operand word.
fn shape(word: u64) -> (usize, usize, u32) {
    ((word >> 48) as usize, (word >> 32 & 0xffff) as usize, word as u32)
}

const NOTHING: u32 = u32::MAX;

impl Gemmini {
    fn saturated(&self, value: i32) -> i8 {
        let scaled = (value as f32 * self.scale).round_ties_even().clamp(-128.0, 127.0) as i8;
        if self.relu { scaled.max(0) } else { scaled }
    }

    fn mvin(&mut self, state: usize, dram: u64, word: u64, memory: &[u8]) {
        let (rows, cols, local) = shape(word);
        let Load { stride, shrunk, block } = self.loads[state];
        let accumulator = local >> 31 == 1;
        assert!(rows <= DIM && cols <= if accumulator && !shrunk { DIM } else { 4 * DIM });
        for r in 0..rows {
            for c in 0..cols {
                let start = dram + r as u64 * stride;
                let byte = || memory[(start + c as u64) as usize] as i8;
                let row = (local & 0x3fff) as usize + r + c / DIM * block;
                if !accumulator {
                    self.spad[row][c % DIM] = if dram == 0 { 0 } else { byte() };
                    continue;
                }
                let value = if dram == 0 {
                    0
                } else if shrunk {
                    i32::from(byte())
                } else {
                    let at = (start + 4 * c as u64) as usize;
                    i32::from_le_bytes(memory[at..at + 4].try_into().unwrap())
                };
                let to = &mut self.acc[row & 0x3ff][c % DIM];
                *to = if local >> 30 & 1 == 1 { to.wrapping_add(value) } else { value };
            }
        }
    }

    fn mvout(&self, dram: u64, word: u64, memory: &mut [u8]) {
        let (rows, cols, local) = shape(word);
        let (accumulator, full) = (local >> 31 == 1, local >> 29 & 1 == 1);
        // Blocks lie DIM rows apart, however many rows are stored; there are none of full width.
        assert!(rows <= DIM && cols <= if accumulator && full { DIM } else { 4 * DIM });
        for r in 0..rows {
            for c in 0..cols {
                let (row, column) = ((local & 0x3fff) as usize + r + c / DIM * DIM, c % DIM);
                let start = dram + r as u64 * self.store_stride;
                let byte = (start + c as u64) as usize;
                if !accumulator {
                    memory[byte] = self.spad[row][column] as u8;
                } else if full {
                    let at = (start + 4 * c as u64) as usize;
                    memory[at..at + 4].copy_from_slice(&self.acc[row & 0x3ff][column].to_le_bytes());
                } else {
                    memory[byte] = self.saturated(self.acc[row & 0x3ff][column]) as u8;
                }
            }
        }
    }

    fn compute(&mut self, a: u64, bias: u64) {
        let ((b_rows, b_cols, b), (c_rows, c_cols, c)) = (shape(self.preloaded.0), shape(self.preloaded.1));
        let (a_rows, a_cols, a) = shape(a);
        assert_eq!(shape(bias).2, NOTHING, "no bias from the scratchpad");
        for i in 0..c_rows {
            for j in 0..c_cols {
                let mut sum = 0i32;
                for k in 0..DIM {
                    let inside = i < a_rows && k < a_cols && k < b_rows && j < b_cols;
                    if inside {
                        let left = i32::from(self.spad[a as usize + i][k]);
                        sum = sum.wrapping_add(left * i32::from(self.spad[b as usize + k][j]));
                    }
                }
                let row = (c & 0x3fff) as usize + i;
                if c >> 31 == 0 {
                    self.spad[row][j] = sum.clamp(-128, 127) as i8;
                } else {
                    let to = &mut self.acc[row & 0x3ff][j];
                    *to = if c >> 30 & 1 == 1 { to.wrapping_add(sum) } else { sum };
                }
            }
        }
    }

    /// The loop as its definition, not tile by tile: C = A B + D, or A + B.
    fn run_loop(&self, rs1: u64, rs2: u64, memory: &mut [u8]) {
        let [(pads, tiles), (a, b), (d, c), (stride_a, stride_b), (stride_d, stride_c)] = self.looping;
        let size =
            |k: u32| ((tiles >> (16 * k) & 0xffff) * DIM as u64 - (pads >> (16 * k) & 0xffff)) as usize;
        let (full, with_d, addition) = (rs1 >> 1 & 1 == 1, rs1 & 1 == 1, rs2 >> 2 & 1 == 1);
        assert_eq!((with_d, rs1 >> 2 & 1, rs1 >> 16), (d != 0, 0, 0));
        assert_eq!(rs1 >> 8 & 0xff, u64::from(self.relu));
        let width = if full { 4 } else { 1 };
        // The load and store states carry the same strides in bytes.
        let strides = [self.loads[0].stride, self.loads[1].stride, self.store_stride];
        assert_eq!(strides, [stride_a, stride_b, stride_c * width]);
        assert!(self.loads[0].shrunk == addition && self.loads[1].shrunk == addition);
        if with_d {
            assert_eq!(self.loads[2].stride, 4 * stride_d);
        }
        for i in 0..size(0) as u64 {
            for j in 0..size(1) as u64 {
                let byte = |at: u64| i32::from(memory[at as usize] as i8);
                let mut sum =
                    if addition { byte(a + i * stride_a + j) + byte(b + i * stride_b + j) } else { 0 };
                for k in 0..if addition { 0 } else { size(2) as u64 } {
                    sum = sum.wrapping_add(byte(a + i * stride_a + k) * byte(b + k * stride_b + j));
                }
                if with_d {
                    let at = (d + 4 * (i * stride_d + j)) as usize;
                    sum = sum.wrapping_add(i32::from_le_bytes(memory[at..at + 4].try_into().unwrap()));
                }
                let at = (c + width * (i * stride_c + j)) as usize;
                if full {
                    memory[at..at + 4].copy_from_slice(&sum.to_le_bytes());
                } else {
                    memory[at] = self.saturated(sum) as u8;
                }
            }
        }
    }
}

impl Accelerator for Gemmini {
    fn command(&mut self, funct7: u32, rs1: u64, rs2: u64, memory: &mut [u8]) {
        match (funct7, rs1 & 3) {
            (0, 0) => {
                assert_eq!(rs1 >> 2 & 1, 1, "weight-stationary");
                assert_eq!((rs1 >> 16 & 0xffff, rs1 >> 32), (1, u64::from(1f32.to_bits())));
            }
            (0, 1) => {
                assert_eq!(rs1 >> 32, u64::from(1f32.to_bits()), "no scale on loads");
                let block = (rs1 >> 16 & 0xffff) as usize;
                self.loads[(rs1 >> 3 & 3) as usize] = Load { stride: rs2, shrunk: rs1 >> 2 & 1 == 1, block };
            }
            (0, 2) => {
                self.relu = rs1 >> 2 & 3 == 1;
                self.store_stride = rs2 & 0xffff_ffff;
                self.scale = f32::from_bits((rs2 >> 32) as u32);
            }
            (2, _) => self.mvin(0, rs1, rs2, memory),
            (3, _) => self.mvout(rs1, rs2, memory),
            (4, _) => self.compute(rs1, rs2),
            (6, _) => self.preloaded = (rs1, rs2),
            (7, _) => self.flushed = true,
            (8, _) => self.run_loop(rs1, rs2, memory),
            (9..=13, _) => self.looping[funct7 as usize - 9] = (rs1, rs2),
            _ => panic!("command {funct7} {rs1:#x} {rs2:#x}"),
        }
    }
}

/// Runs a kernel's code over operands; the results.
pub(crate) fn run(code: &[u8], operands: &[Vec<u8>], results: &[u64], scratch: u64) -> Vec<Vec<u8>> {
    let mut memory = vec![0xa5u8; FIRST as usize];
    let mut places = Vec::new();
    let zeros: Vec<Vec<u8>> =
        results.iter().chain([&scratch]).map(|&bytes| vec![0xa5; bytes as usize]).collect();
    for bytes in operands.iter().chain(&zeros) {
        // Not aligned on purpose: XLA's buffers are aligned to 16 bytes at most.
        places.push(memory.len() as u64 + 16);
        memory.extend([0xa5; 16]);
        memory.extend(bytes);
    }
    for (k, place) in places.iter().enumerate() {
        let at = TABLE as usize + 8 * k;
        memory[at..at + 8].copy_from_slice(&place.to_le_bytes());
    }
    let load = || Load { stride: 0, shrunk: false, block: DIM };
    let mut device = Gemmini {
        spad: vec![[0x5a; DIM]; 16384],
        acc: vec![[0x5a5a; DIM]; 1024],
        loads: [load(), load(), load()],
        store_stride: 0,
        scale: 0.0,
        relu: false,
        preloaded: (0, 0),
        looping: [(0, 0); 5],
        flushed: false,
    };
    riscv::run(code, &mut memory, TABLE, FIRST - 64, 10_000_000, &mut device);
    assert!(device.flushed);
    let ends = places.iter().zip(operands.iter().chain(&zeros)).skip(operands.len()).take(results.len());
    ends.map(|(&at, bytes)| memory[at as usize..at as usize + bytes.len()].to_vec()).collect()
}

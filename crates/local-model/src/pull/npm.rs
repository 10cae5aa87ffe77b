//! Finds the registry that npm is configured to use, without npm.

use std::path::PathBuf;

use crate::prebuilt::{PACKAGE_VERSION, Prebuilt};

/// The scope of the packages; npm may have a registry for one scope only.
const SCOPE: &str = "@node-llama-cpp";

/// Returns the registry in the environment, or in the user's settings of npm; `None` if neither has one.
pub(super) fn registry(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let home = || variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from);
    let named =
        variable("NPM_CONFIG_USERCONFIG").or_else(|| variable("npm_config_userconfig")).map(PathBuf::from);
    variable("npm_config_registry").or_else(|| variable("NPM_CONFIG_REGISTRY")).or_else(|| {
        let settings = std::fs::read_to_string(named.or_else(|| Some(home()?.join(".npmrc")))?).ok()?;
        registry_of(&settings)
    })
}

/// Returns the registry in the settings of npm: the one for the scope, otherwise the one for all packages.
fn registry_of(settings: &str) -> Option<String> {
    let value = |key: &str| {
        let lines = settings.lines().filter_map(|line| line.split_once('='));
        let found = lines.rev().find(|(name, _)| name.trim() == key)?.1;
        let found = found.trim().trim_matches(['"', '\'']);
        // Only npm expands variables, so a value with one is not used.
        (!found.is_empty() && !found.contains("${")).then(|| found.to_owned())
    };
    value(&format!("{SCOPE}:registry")).or_else(|| value("registry"))
}

/// Returns the address of the engine's package in a registry.
pub(super) fn address(registry: &str, prebuilt: &Prebuilt) -> String {
    let (registry, platform) = (registry.trim_end_matches('/'), prebuilt.platform);
    format!("{registry}/{SCOPE}/{platform}/-/{platform}-{PACKAGE_VERSION}.tgz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_of_settings_prefers_the_owners_line_and_takes_the_last() {
        let of = |settings: &str| registry_of(settings);
        assert_eq!(of("registry=http://a/\nregistry = \"http://b/\"\n").as_deref(), Some("http://b/"));
        assert_eq!(of("@node-llama-cpp:registry=http://c\nregistry=http://a").as_deref(), Some("http://c"));
        assert_eq!(of("; registry\nregistry=${OURS}\n//a/:_authToken=x"), None);
    }

    #[test]
    fn registry_reads_the_environment_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".npmrc"), "registry=http://from-file/").unwrap();
        let home = folder.path().display().to_string();
        let set = |name: &str, more: Option<&str>| match name {
            "HOME" => Some(home.clone()),
            "NPM_CONFIG_REGISTRY" => more.map(str::to_owned),
            _ => None,
        };
        assert_eq!(registry(|name| set(name, None)).as_deref(), Some("http://from-file/"));
        assert_eq!(registry(|name| set(name, Some("http://set/"))).as_deref(), Some("http://set/"));
        assert_eq!(registry(|_| None), None);
    }
}

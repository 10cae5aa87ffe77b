//! The registry of tools by name.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use archon_types::{Encoded, Json, Tool, ToolSpec};
use jsonschema::Validator;

use crate::{IntoTool, ToolSetupError, dialect, lint};

/// The tools that an engine offers, by name.
///
/// Clones share the tools. Tools can be added and removed while runs use them; a call that passed its checks keeps
/// its tool, even if it has not begun yet. Lists are in the order of the names, not of registration, so that two
/// processes with the same tools send the same request, byte for byte.
///
/// ```
/// use archon_tools::{ToolRegistry, builtin::Calculator};
///
/// let tools = ToolRegistry::new();
/// tools.register(Calculator::new())?;
/// assert_eq!(tools.names(), ["calculator"]);
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolRegistry {
    shared: Arc<RwLock<Shared>>,
}

#[derive(Default)]
struct Shared {
    tools: BTreeMap<Arc<str>, Arc<Registered>>,
    /// Tools with a source of further tools, by the prefix of the names of these further tools.
    sources: BTreeMap<String, Arc<dyn Tool>>,
    specs: Arc<Encoded<Vec<ToolSpec>>>,
}

/// A tool with data that were made at registration.
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn Tool>,
    /// A copy, so that the definition does not change while the tool is registered.
    pub(crate) spec: ToolSpec,
    pub(crate) validator: Validator,
}

impl ToolRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool: a [`Tool`], an `Arc<dyn Tool>`, or a function with [`#[tool]`](crate::tool). A tool with a
    /// [source](Tool::source) cannot be called itself: only the tools of its source can. [`specs`](Self::specs) lists
    /// neither that tool nor the tools of its source.
    ///
    /// # Errors
    /// [`ToolSetupError`] if the name is taken or invalid, if the description is empty, or if the parameters
    /// are not a JSON Schema of an object.
    pub fn register<How>(&self, tool: impl IntoTool<How>) -> Result<(), ToolSetupError> {
        self.register_all([tool.into_tool()])
    }

    /// Adds a tool to those that can be called, but not yet to the specs that [`specs`](Self::specs) returns.
    fn add(&self, tool: Arc<dyn Tool>) -> Result<(), ToolSetupError> {
        if tool.source().is_some() {
            return self.register_source(tool);
        }
        let registered = Registered::new(tool)?;
        let name: Arc<str> = registered.spec.name.as_str().into();
        let mut shared = self.write();
        if shared.tools.contains_key(&name) {
            return Err(ToolSetupError::AlreadyRegistered { name: name.to_string() });
        }
        for warning in lint(&registered.spec) {
            tracing::warn!(target: "archon::tools", tool = %name, "{warning}");
        }
        shared.tools.insert(name, Arc::new(registered));
        Ok(())
    }

    fn register_source(&self, tool: Arc<dyn Tool>) -> Result<(), ToolSetupError> {
        let name = tool.spec().name.clone();
        let Some(prefix) = name.strip_suffix('*').filter(|prefix| name_problem(prefix).is_none()) else {
            let why = "the name of a tool with a source must be PREFIX*";
            return Err(ToolSetupError::InvalidName { name, why });
        };
        match self.write().sources.entry(prefix.to_owned()) {
            Entry::Occupied(_) => Err(ToolSetupError::AlreadyRegistered { name }),
            Entry::Vacant(place) => {
                place.insert(tool);
                Ok(())
            }
        }
    }

    /// Adds several tools.
    ///
    /// # Errors
    /// As for [`register`](Self::register). The tools before the failed one stay registered.
    pub fn register_all(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<(), ToolSetupError> {
        let added = tools.into_iter().try_for_each(|tool| self.add(tool));
        // Once, because each time copies all definitions.
        self.write().publish();
        added
    }

    /// Removes the tool called `name` and returns it; `None` if there is none. Calls that passed their checks before
    /// still run, and running calls go on.
    pub fn unregister(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let mut shared = self.write();
        if let Some(source) = name.strip_suffix('*').and_then(|prefix| shared.sources.remove(prefix)) {
            return Some(source);
        }
        let removed = shared.tools.remove(name)?;
        shared.publish();
        Some(removed.tool.clone())
    }

    /// Returns the tool called `name`; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.find(name).map(|registered| registered.tool.clone())
    }

    /// Returns all tools, ordered by name.
    pub fn list(&self) -> Vec<Arc<dyn Tool>> {
        self.read().tools.values().map(|registered| registered.tool.clone()).collect()
    }

    /// Returns the names of all tools, ordered by name.
    pub fn names(&self) -> Vec<String> {
        self.read().tools.keys().map(|name| name.to_string()).collect()
    }

    /// Returns the specs of all tools, ordered by name. The list is encoded as JSON only once until tools are
    /// added or removed.
    pub fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.read().specs.clone()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Registered>> {
        let found = self.read().tools.get(name).cloned();
        found.or_else(|| self.find_in_sources(name))
    }

    /// Returns the tool called `name` of a source, if the source has it now.
    pub(crate) fn find_in_sources(&self, name: &str) -> Option<Arc<Registered>> {
        let tool = self.source_of(name)?;
        let tool = tool.source()?.tools().ok()?.into_iter().find(|tool| tool.spec().name == name)?;
        Registered::new(tool).ok().map(Arc::new)
    }

    /// Returns the registered tool with a source whose prefix `name` begins with; `None` if there is no such tool, or
    /// if the registry itself has a tool called `name`.
    pub(crate) fn source_of(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let shared = self.read();
        if shared.tools.contains_key(name) {
            return None;
        }
        let of_name = shared.sources.iter().find(|(prefix, _)| name.starts_with(prefix.as_str()));
        of_name.map(|(_, tool)| tool.clone())
    }

    // No code that can panic runs under the lock, so the data under a poisoned lock are intact.
    fn read(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shared> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolRegistry").field(&self.names()).finish()
    }
}

impl Shared {
    fn publish(&mut self) {
        let specs = self.tools.values().map(|registered| registered.spec.clone()).collect();
        self.specs = Arc::new(Encoded::new(specs));
    }
}

impl Registered {
    fn new(tool: Arc<dyn Tool>) -> Result<Self, ToolSetupError> {
        let spec = tool.spec().clone();
        if let Some(why) = name_problem(&spec.name) {
            return Err(ToolSetupError::InvalidName { name: spec.name, why });
        }
        if spec.description.trim().is_empty() {
            return Err(ToolSetupError::NoDescription { name: spec.name });
        }
        let validator = compile(&spec.parameters)
            .map_err(|why| ToolSetupError::InvalidSchema { name: spec.name.clone(), why })?;
        Ok(Self { tool, spec, validator })
    }
}

fn compile(parameters: &Json) -> Result<Validator, String> {
    match parameters.get("type") {
        None if parameters.is_object() => {}
        Some(Json::String(kind)) if kind == "object" => {}
        _ => {
            return Err(
                "the schema must have \"type\": \"object\", because arguments are an object".to_owned()
            );
        }
    }
    dialect::options(parameters).build(parameters).map_err(|e| e.to_string())
}

fn name_problem(name: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name {
        "" => Some("it is empty"),
        _ if name.len() > 64 => Some("it has more than 64 characters"),
        _ if !name.chars().all(allowed) => Some("only letters, digits, '_', '-' and '.' are allowed"),
        _ => None,
    }
}

//! The built-in catalogue with a person's own additions: newer models, other prices, a server's context window.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{Capabilities, Provider, likeness, provider_methods_of};

use super::{Line, ModelInfo, known_models, listed, model_info, source_of};
use crate::error::SetupError;

/// The maximum number of names that [`Catalogue::nearest`] returns.
const NEAREST: usize = 3;
/// The minimum similarity of a suggested name, from 0 to 1.
const ALIKE: f64 = 0.5;

/// The built-in catalogue, and a person's own lines, whose values take precedence.
///
/// A line is a JSON object. `model` is the provider's id, a colon and the model's name: `openai:gpt-5-mini`,
/// `ollama:qwen3:8b`, `openai-compatible@http://127.0.0.1:8080/v1:qwen3`. The other fields are optional; a
/// field that is left out keeps the built-in value:
///
/// | field | value |
/// |---|---|
/// | `context_window`, `max_output` | tokens |
/// | `input`, `output` | US dollars per million tokens; a price needs both |
/// | `cache_read`, `cache_write` | the same, for tokens read from or written to a cache; default `input` |
/// | `long` | `above`, a number of prompt tokens, and these four prices for longer prompts |
/// | `thinking`, `vision`, `pdf` | true if the model thinks; if it accepts images; if it accepts PDF files |
/// | `tools` | true if it accepts tool specs; if false, the loop uses text instead |
/// | `small` | true if it needs short instructions |
///
/// ```
/// use archon_providers::Catalogue;
///
/// let own = r#"{"model":"openai:gpt-9","context_window":2000000,"input":1.25,"output":10}"#;
/// let catalogue = Catalogue::default().with_lines(own, "me").unwrap();
/// assert_eq!(catalogue.info("openai", "gpt-9").unwrap().context_window, Some(2_000_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The own lines of each model with their source; a later line replaces the values of an earlier one.
    own: BTreeMap<String, Vec<(Line, Arc<str>)>>,
}

impl Catalogue {
    /// Adds these lines. Their values take precedence over those of earlier lines and of the built-in
    /// catalogue. `source` is a text for people that names the source of the lines. Blank lines are skipped.
    ///
    /// ```
    /// use archon_providers::Catalogue;
    ///
    /// let line = r#"{"model":"ollama:qwen3:8b","context_window":32768}"#; // tokens
    /// let catalogue = Catalogue::default().with_lines(line, "my settings")?;
    /// # Ok::<(), archon_providers::SetupError>(())
    /// ```
    ///
    /// # Errors
    /// [`SetupError::Catalogue`] if a line is not valid, names no provider, or has a price below zero.
    pub fn with_lines(mut self, lines: &str, source: &str) -> Result<Self, SetupError> {
        self.add(lines.lines().enumerate(), source)?;
        Ok(self)
    }

    /// Adds the lines of a file in the format of the built-in file. The first line has source and date:
    /// `{"source":"…","date":"…"}`. The other lines are as for [`with_lines`](Self::with_lines).
    ///
    /// ```
    /// use archon_providers::Catalogue;
    ///
    /// fn read(path: &str) -> Result<Catalogue, Box<dyn std::error::Error>> {
    ///     Ok(Catalogue::default().with_file(&std::fs::read_to_string(path)?)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`SetupError::Catalogue`] if the first line has no `source` and `date`, or as for
    /// [`with_lines`](Self::with_lines).
    pub fn with_file(mut self, text: &str) -> Result<Self, SetupError> {
        let reason = r#"the first line is not {"source":"…","date":"…"}"#;
        let source = source_of(text).ok_or_else(|| SetupError::Catalogue { reason: reason.to_owned() })?;
        self.add(text.lines().enumerate().skip(1), &source.to_string())?;
        Ok(self)
    }

    /// Returns true if no lines were added to the built-in catalogue.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Returns the models with added lines, as `PROVIDER:MODEL`, sorted.
    pub fn own_names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }

    /// Returns the facts about a model from added lines and the built-in catalogue; `None` if neither lists
    /// it. `provider` is the [id](Provider::id) of the provider.
    pub fn info(&self, provider: &str, model: &str) -> Option<ModelInfo> {
        self.over(model_info(provider, model), &format!("{}:{model}", listed(provider)))
    }

    /// Returns every model of the built-in catalogue and of added lines, sorted by name.
    pub fn models(&self) -> Vec<ModelInfo> {
        let mut models: BTreeMap<String, ModelInfo> =
            known_models().map(|info| (info.name.clone(), info)).collect();
        for name in self.own.keys() {
            if let Some(info) = self.over(models.remove(name), name) {
                models.insert(name.clone(), info);
            }
        }
        models.into_values().collect()
    }

    /// Returns the names of at most three models of this provider that are most similar to `model`, the most
    /// similar first.
    pub fn nearest(&self, provider: &str, model: &str) -> Vec<String> {
        let start = format!("{}:", listed(provider));
        let models = self.models();
        let names = models.iter().filter_map(|known| known.name.strip_prefix(&start));
        let alike = names.map(|name| (likeness(model, name), name.to_owned()));
        let mut alike: Vec<_> = alike.filter(|(likeness, _)| *likeness >= ALIKE).collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0));
        alike.into_iter().take(NEAREST).map(|(_, name)| name).collect()
    }

    fn add<'a>(
        &mut self,
        lines: impl Iterator<Item = (usize, &'a str)>,
        source: &str,
    ) -> Result<(), SetupError> {
        let source: Arc<str> = source.into();
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let line = read(line)
                .map_err(|what| SetupError::Catalogue { reason: format!("line {}: {what}", at + 1) })?;
            self.own.entry(line.model.clone()).or_default().push((line, source.clone()));
        }
        Ok(())
    }

    /// Returns `known` with the values that the own lines of this model set; `None` if there are neither
    /// known facts nor own lines.
    fn over(&self, known: Option<ModelInfo>, name: &str) -> Option<ModelInfo> {
        let said = self.own.get(name).map_or(&[][..], Vec::as_slice).iter();
        said.fold(known, |known, (line, source)| Some(with_line(known, line, source)))
    }
}

/// Returns `known` with the values that one line sets.
fn with_line(known: Option<ModelInfo>, line: &Line, source: &str) -> ModelInfo {
    let said = ModelInfo { source: source.to_owned(), ..ModelInfo::from(line.clone()) };
    let Some(known) = known else { return said };
    ModelInfo {
        context_window: said.context_window.or(known.context_window),
        max_output: said.max_output.or(known.max_output),
        price: said.price.or(known.price),
        thinking: line.thinking.unwrap_or(known.thinking),
        vision: line.vision.unwrap_or(known.vision),
        pdf: line.pdf.unwrap_or(known.pdf),
        tools: said.tools.or(known.tools),
        is_small: said.is_small.or(known.is_small),
        source: format!("{source}, {}", known.source),
        name: said.name,
    }
}

/// Parses a line. In `model`, the provider's id is replaced by the provider's name in the catalogue.
fn read(text: &str) -> Result<Line, String> {
    let mut line: Line = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let name = &line.model;
    // In an id with an address (`@http://…`) this is only its beginning, which is enough for these checks.
    let provider = name.split(':').next().unwrap_or_default();
    if provider.is_empty() || provider.len() + 1 >= name.len() {
        return Err(format!("{name:?} is not PROVIDER:MODEL"));
    }
    let long = line.long.iter().flat_map(|l| [Some(l.input), Some(l.output), l.cache_read, l.cache_write]);
    let mut prices = [line.input, line.output, line.cache_read, line.cache_write].into_iter().chain(long);
    if prices.any(|price| price.is_some_and(|price| !price.is_finite() || price < 0.0)) {
        return Err(format!("{name:?} has a price below zero"));
    }
    if listed(provider) != provider {
        line.model = format!("{}{}", listed(provider), &name[provider.len()..]);
    }
    Ok(line)
}

/// A provider that reports the context windows, prices and abilities that a person added to a [`Catalogue`].
///
/// Only added lines of the catalogue are used. They take precedence over the facts of the wrapped provider.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::{Catalogue, CatalogueProvider, ScriptedProvider};
///
/// let model = Arc::new(ScriptedProvider::texts(["Hello."]));
/// let provider = CatalogueProvider::new(model, Arc::new(Catalogue::default()));
/// ```
#[derive(Clone)]
pub struct CatalogueProvider {
    inner: Arc<dyn Provider>,
    catalogue: Arc<Catalogue>,
}

impl CatalogueProvider {
    /// Wraps `inner`, so that the added lines of this catalogue take precedence over its facts.
    pub fn new(inner: Arc<dyn Provider>, catalogue: Arc<Catalogue>) -> Self {
        Self { inner, catalogue }
    }
}

impl Provider for CatalogueProvider {
    provider_methods_of!(inner: id, secrets, stream);

    fn capabilities(&self, model: &str) -> Capabilities {
        let mut can = self.inner.capabilities(model);
        let name = format!("{}:{model}", listed(self.id()));
        if let Some(said) = self.catalogue.over(None, &name) {
            can.context_window = said.context_window.or(can.context_window);
            can.price = said.price.or(can.price);
            can.native_tools = said.tools.unwrap_or(can.native_tools);
            can.is_small = said.is_small.unwrap_or(can.is_small);
        }
        for (line, _) in self.catalogue.own.get(&name).into_iter().flatten() {
            can.reads.images = line.vision.or(can.reads.images);
            can.reads.pdfs = line.pdf.or(can.reads.pdfs);
        }
        can
    }
}

archon_types::debug_fields!(CatalogueProvider: inner);

#[cfg(test)]
mod tests {
    use archon_types::ModelPrice;

    use super::*;
    use crate::ScriptedProvider;

    const FILE: &str = r#"{"source":"a list","date":"2027-01-01"}
{"model":"openai:gpt-9","context_window":2000000,"input":1.25,"output":10,"thinking":true}

{"model":"openai-responses:gpt-5-mini","input":1,"output":1}
"#;

    #[test]
    fn catalogue_info_takes_each_field_from_the_last_source_and_names_it() {
        let catalogue = Catalogue::default().with_file(FILE).unwrap();
        let own = r#"{"model":"openai:gpt-9","context_window":5,"tools":false,"thinking":false}"#;
        let catalogue = catalogue.with_lines(own, "the settings").unwrap();
        let young = catalogue.info("openai", "gpt-9").unwrap();
        assert_eq!((young.context_window, young.tools, young.thinking), (Some(5), Some(false), false));
        assert_eq!(young.price, Some(ModelPrice::new(1_250_000, 10_000_000)));
        assert_eq!(young.source, "the settings, a list of 2027-01-01");
        let built_in = model_info("openai", "gpt-5-mini").unwrap();
        let known = catalogue.info("openai", "gpt-5-mini").unwrap();
        assert_eq!(known.price, Some(ModelPrice::new(1_000_000, 1_000_000)));
        assert_eq!((known.context_window, known.vision), (built_in.context_window, built_in.vision));
        assert_eq!(catalogue.info("openai-responses", "gpt-5-mini").unwrap().price, known.price);
        assert_eq!(catalogue.info("openai", "gpt-10"), None);
    }

    #[test]
    fn catalogue_models_are_built_in_and_own_models_sorted() {
        let catalogue = Catalogue::default().with_file(FILE).unwrap();
        assert_eq!(catalogue.own_names().collect::<Vec<_>>(), ["openai:gpt-5-mini", "openai:gpt-9"]);
        let models = catalogue.models();
        assert_eq!(models.len(), known_models().count() + 1);
        assert!(models.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(catalogue.nearest("openai", "gpt-9x")[0], "gpt-9");
    }

    #[test]
    fn catalogue_with_invalid_lines_names_the_line_and_the_problem() {
        let wrong = |text: &str| Catalogue::default().with_file(text).unwrap_err().to_string();
        assert_eq!(
            wrong(""),
            r#"the catalogue of models cannot be read: the first line is not {"source":"…","date":"…"}"#
        );
        assert!(wrong(&FILE[50..]).contains("the first line"), "a line is no first line");
        let after = |line: &str| wrong(&format!("{FILE}{line}\n"));
        assert_eq!(
            after(r#"{"model":"gpt-9"}"#),
            r#"the catalogue of models cannot be read: line 5: "gpt-9" is not PROVIDER:MODEL"#
        );
        assert_eq!(
            after(r#"{"model":"openai:"}"#),
            r#"the catalogue of models cannot be read: line 5: "openai:" is not PROVIDER:MODEL"#
        );
        let below = r#"{"model":"a:b","input":-1,"output":1}"#;
        assert_eq!(
            after(below),
            r#"the catalogue of models cannot be read: line 5: "a:b" has a price below zero"#
        );
        assert!(
            after("{").starts_with("the catalogue of models cannot be read: line 5: EOF"),
            "{}",
            after("{")
        );
    }

    // spec: P-40
    #[test]
    fn catalogue_provider_capabilities_add_own_entries_to_the_providers() {
        let lines = r#"{"model":"scripted:m","context_window":9,"input":1,"output":2,"tools":false,"small":true,"pdf":false}
            {"model":"scripted:n","context_window":7}"#;
        let catalogue = Catalogue::default().with_lines(lines, "me").unwrap();
        let inner: Arc<dyn Provider> = Arc::new(ScriptedProvider::new([]));
        let provider = CatalogueProvider::new(inner.clone(), catalogue.into());
        let can = provider.capabilities("m");
        assert_eq!((can.context_window, can.native_tools, can.is_small), (Some(9), false, true));
        assert_eq!(can.price, Some(ModelPrice::new(1_000_000, 2_000_000)));
        assert_eq!((can.reads.images, can.reads.pdfs), (None, Some(false)));
        let mut known = inner.capabilities("n");
        known.context_window = Some(7);
        assert_eq!(provider.capabilities("n"), known);
        assert_eq!(provider.capabilities("o"), inner.capabilities("o"));
    }
}

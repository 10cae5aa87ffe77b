//! Streams as single services send them, with what they do differently.

/// Name, body of the response, and the message in a line, as in the other fixtures.
pub(crate) const STREAMS: &[(&str, &str, &str)] = &[
    (
        "OpenRouter: comments while it waits, reasoning with details, usage with cost",
        ": OPENROUTER PROCESSING\n\n\
         : OPENROUTER PROCESSING\n\n\
         data: {\"id\":\"gen-1\",\"provider\":\"Fireworks\",\"model\":\"z/m\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"Hm\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm\",\"format\":\"unknown\",\"index\":0}]},\"finish_reason\":null,\"native_finish_reason\":null,\"logprobs\":null}]}\n\n\
         data: {\"id\":\"gen-1\",\"model\":\"z/m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Yes\",\"reasoning\":null,\"reasoning_details\":[]},\"finish_reason\":\"stop\",\"native_finish_reason\":\"STOP\"}]}\n\n\
         data: {\"id\":\"gen-1\",\"model\":\"z/m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,\"total_tokens\":14,\"cost\":0.00014,\"is_byok\":false,\"prompt_tokens_details\":{\"cached_tokens\":4,\"audio_tokens\":0},\"cost_details\":{\"upstream_inference_cost\":null},\"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n\n\
         data: [DONE]\n\n",
        "stop z/m in 5 out 5 cached 4: thinking \"Hm\" text \"Yes\"",
    ),
    (
        "DeepSeek: keep-alive comments, reasoning_content, its own names for cached tokens",
        ": keep-alive\n\n\
         data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"deepseek-reasoner\",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":null,\"reasoning_content\":\"So\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\",\"reasoning_content\":null},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":6,\"total_tokens\":18,\"prompt_tokens_details\":{\"cached_tokens\":8},\"completion_tokens_details\":{\"reasoning_tokens\":4},\"prompt_cache_hit_tokens\":8,\"prompt_cache_miss_tokens\":4}}\n\n\
         data: [DONE]\n\n",
        "stop deepseek-reasoner in 4 out 6 cached 8: thinking \"So\" text \"4\"",
    ),
    (
        "xAI: reasoning tokens beside those of the completion",
        "data: {\"id\":\"1\",\"model\":\"grok-4\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":\"Thinking... \",\"role\":\"assistant\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\",\"role\":\"assistant\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":32,\"completion_tokens\":9,\"total_tokens\":135,\"prompt_tokens_details\":{\"text_tokens\":32,\"cached_tokens\":6},\"completion_tokens_details\":{\"reasoning_tokens\":94},\"num_sources_used\":0}}\n\n\
         data: [DONE]\n\n",
        "stop grok-4 in 26 out 103 cached 6: thinking \"Thinking... \" text \"4\"",
    ),
    (
        "Moonshot: usage in the choice",
        "data: {\"id\":\"cmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"kimi\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":13,\"total_tokens\":32,\"cached_tokens\":10}}]}\n\n\
         data: [DONE]\n\n",
        "stop kimi in 9 out 13 cached 10: thinking \"hm\" text \"Hi\"",
    ),
    (
        "Z.ai: calls whole, a finish reason of its own",
        "data: {\"id\":\"1\",\"created\":1,\"model\":\"glm\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"reasoning_content\":\"Look\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_1\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\n\
         data: [DONE]\n\n",
        "tools glm in 7 out 3 cached 0: thinking \"Look\" call call_1 add {\"a\":1}",
    ),
    (
        "Groq: usage in a place of its own",
        "data: {\"id\":\"1\",\"model\":\"oss\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"x_groq\":{\"id\":\"req_1\"}}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"Well\",\"channel\":\"analysis\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"id\":\"req_1\",\"usage\":{\"queue_time\":0.01,\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}}\n\n\
         data: [DONE]\n\n",
        "stop oss in 5 out 2 cached 0: thinking \"Well\" text \"Hi\"",
    ),
    (
        "Cerebras: times in the last chunk",
        "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"index\":0}],\"model\":\"oss\",\"object\":\"chat.completion.chunk\"}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"index\":0}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\",\"index\":0}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7},\"time_info\":{\"queue_time\":0.0001,\"total_time\":0.1}}\n\n\
         data: [DONE]\n\n",
        "stop oss in 5 out 2 cached 0: text \"Hi\"",
    ),
    (
        "Ollama: a call in one piece, `stop` as its reason, no usage unless asked",
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"qwen3:8b\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"ok\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_x\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: [DONE]\n\n",
        "tools qwen3:8b in 0 out 0 cached 0: thinking \"ok\" call call_x add {\"a\":1}",
    ),
    (
        "llama.cpp: timings, and arguments token by token",
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"gemma\",\"system_fingerprint\":\"b1\",\"object\":\"chat.completion.chunk\"}\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"abc\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\"}}]}}]}\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"a\\\":1}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"finish_reason\":\"tool_calls\",\"index\":0,\"delta\":{}}],\"timings\":{\"prompt_n\":5,\"predicted_n\":7}}\n\n\
         data: {\"choices\":[],\"created\":1,\"usage\":{\"completion_tokens\":7,\"prompt_tokens\":5,\"total_tokens\":12},\"timings\":{\"prompt_n\":5}}\n\n\
         data: [DONE]\n\n",
        "tools gemma in 5 out 7 cached 0: call abc add {\"a\":1}",
    ),
    (
        "vLLM: reasoning_content beside an empty list of calls",
        "data: {\"id\":\"chatcmpl-1\",\"model\":\"Qwen/Qwen3-8B\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":null}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\",\"tool_calls\":[]},\"token_ids\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\",\"stop_reason\":null}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"total_tokens\":7,\"completion_tokens\":2}}\n\n\
         data: [DONE]\n\n",
        "stop Qwen/Qwen3-8B in 5 out 2 cached 0: thinking \"hm\" text \"Hi\"",
    ),
    (
        "Perplexity: all of the answer so far beside each delta, and sources",
        "data: {\"id\":\"1\",\"model\":\"sonar\",\"created\":1,\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":1,\"total_tokens\":5},\"citations\":[\"https://a\"],\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"finish_reason\":null,\"message\":{\"role\":\"assistant\",\"content\":\"Grü\"},\"delta\":{\"role\":\"assistant\",\"content\":\"Grü\"}}]}\n\n\
         data: {\"id\":\"1\",\"model\":\"sonar\",\"choices\":[{\"index\":0,\"finish_reason\":null,\"message\":{\"role\":\"assistant\",\"content\":\"Grüße\"},\"delta\":{\"role\":\"assistant\",\"content\":\"ße\"}}]}\n\n\
         data: {\"id\":\"1\",\"model\":\"sonar\",\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2,\"total_tokens\":6},\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"Grüße!\"},\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
         data: [DONE]\n\n",
        "stop sonar in 4 out 2 cached 0: text \"Grüße!\"",
    ),
    (
        "Perplexity: the whole answer as a message beside an empty delta",
        "data: {\"id\":\"1\",\"model\":\"sonar\",\"object\":\"chat.completion.done\",\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2,\"total_tokens\":6},\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"<think>hm</think>Hi\"},\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "stop sonar in 4 out 2 cached 0: thinking \"hm\" text \"Hi\"",
    ),
    (
        "Snowflake: an empty finish reason, and no mark at the end",
        "data: {\"id\":\"1\",\"model\":\"claude\",\"choices\":[{\"index\":0,\"delta\":{\"type\":\"text\",\"content\":\"Hi\",\"text\":\"Hi\"},\"finish_reason\":\"\"}],\"usage\":{}}\n\n\
         data: {\"id\":\"1\",\"model\":\"claude\",\"choices\":[{\"index\":0,\"delta\":{\"type\":\"text\",\"content\":\"!\"},\"finish_reason\":\"\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n",
        "stop claude in 5 out 2 cached 0: text \"Hi!\"",
    ),
    (
        "Snowflake: a whole answer with a call and an empty finish reason",
        "data: {\"model\":\"claude\",\"choices\":[{\"index\":0,\"message\":{\"content\":\"\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\"finish_reason\":\"\"}]}\n\n",
        "tools claude in 0 out 0 cached 0: call a add {\"a\":1}",
    ),
    (
        "vLLM: the text that ended the answer",
        "data: {\"id\":\"1\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\",\"stop_reason\":\"END\"}]}\n\n\
         data: [DONE]\n\n",
        "sequence qwen in 0 out 0 cached 0: ended by \"END\" text \"Hi\"",
    ),
    (
        "SGLang: the token that ended the answer is no text",
        "data: {\"id\":\"1\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\",\"matched_stop\":151645}]}\n\n\
         data: [DONE]\n\n",
        "stop qwen in 0 out 0 cached 0: text \"Hi\"",
    ),
];

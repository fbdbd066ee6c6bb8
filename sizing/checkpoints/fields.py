"""Reading the fields of a configuration by name: the kind and the range of each checked, and none overlooked."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.json_reading import kind

MOST = 2**31 - 1
LONGEST_LIST = 10_000

# Fields that change neither the weights nor the cache: how it was trained, how text is generated, where special tokens
# are, how positions are turned, how it is run. Everything else that is set and was not read is refused by name.
_HARMLESS_WORDS = """
architectures model_type auto_map task_specific_params custom_pipelines problem_type finetuning_task
torch_dtype dtype torchscript use_bfloat16 transformers_version name_or_path license
use_cache return_dict return_dict_in_generate output_attentions output_hidden_states output_scores
output_router_logits num_logits_to_keep logits_to_keep gradient_checkpointing is_decoder
rope_theta rope_scaling rope_parameters rope_local_base_freq rope_interleaved rope_ratio rope_percent rotary_pct
rotary_dim rotary_emb_base partial_rotary_factor original_max_position_embeddings original_rope use_mrope
initial_context_length initializer_range initializer_factor init_method_std init_std
attention_dropout hidden_dropout embedding_dropout residual_dropout embd_pdrop resid_pdrop attn_pdrop
classifier_dropout dropout
layer_norm_eps layer_norm_epsilon rms_norm_eps norm_eps norm_epsilon layernorm_epsilon
query_pre_attn_scalar final_logit_softcapping attn_logit_softcapping logit_scale swiglu_limit
hidden_act hidden_activation activation activation_function mlp_hidden_act mamba_hidden_act
pretraining_tp ep_size slow_but_exact residual_in_fp32 rescale_prenorm_residual
apply_residual_connection_post_layernorm
norm_topk_prob topk_group n_group routed_scaling_factor scoring_func seq_aux aux_loss_alpha topk_method
router_aux_loss_coef router_jitter_noise router_bias_update_speed experts_per_token
chunk_size time_step_min time_step_max time_step_floor time_step_limit time_step_rank use_mamba_kernels
mamba_ssm_cache_dtype mamba_ssm_dtype
num_return_sequences num_beams num_beam_groups max_length min_length temperature top_k top_p typical_p do_sample
early_stopping length_penalty repetition_penalty diversity_penalty no_repeat_ngram_size
encoder_no_repeat_ngram_size bad_words_ids begin_suppress_tokens suppress_tokens exponential_decay_length_penalty
forced_bos_token_id forced_eos_token_id remove_invalid_values prefix tokenizer_class id2label label2id
chunk_size_feed_forward tie_encoder_decoder tf_legacy_loss ignore_index
mm_tokens_per_image boi_token_index eoi_token_index image_token_index image_token_id video_token_id
cache_implementation interpolate_factor attention_softmax_in_fp32 scale_attention_softmax_in_fp32 scale_attn_weights
"""
HARMLESS = frozenset(_HARMLESS_WORDS.split())
_HARMLESS_NAMES = re.compile(r"_.*|unsloth_.*|transformers\.js_config|.*_token_ids?|.*_token_index|.*_dropout(_prob)?")
_ABSENT = object()


class Fields:
    """One object of a configuration. Every read is remembered, so that what was never read can be refused.

    Shape: `path` is put before each name in messages ("text_config."). A field given as null counts as not given.
    Raises: UnreadableModel naming the field, from every method that reads one.
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path
        self._read: set[str] = set()

    def name_of(self, name: str) -> str:
        return self._path + name

    def refusal(self, name: str, reason: str, fix: str) -> UnreadableModel:
        return UnreadableModel(self.name_of(name), reason, fix)

    def mentioned(self, name: str) -> bool:
        """Whether the file has the field at all, null included: some say "none" by null."""
        return name in self._values

    def given(self, name: str) -> bool:
        return self._get(name) is not _ABSENT

    def whole(self, name: str, default: int | None = None, *, least: int = 1, most: int = MOST) -> int:
        """A whole number; `default` is what the architecture says where the file is silent."""
        value = self._get(name)
        if value is _ABSENT:
            if default is None:
                raise self.refusal(name, "it is missing", f"Give {name} as a whole number")
            return default
        return self._whole(name, value, least, most)

    def whole_or_none(self, name: str, *, least: int = 1, most: int = MOST) -> int | None:
        return self.whole(name, least=least, most=most) if self.given(name) else None

    def wholes(self, name: str, *, least: int = 0) -> tuple[int, ...]:
        value = self._get(name)
        if value is _ABSENT:
            return ()
        return tuple(self._whole(name, item, least, MOST) for item in self._list(name, value))

    def flag(self, name: str, default: bool | None = None) -> bool:
        value = self._get(name)
        if value is _ABSENT:
            if default is None:
                raise self.refusal(name, "it is missing", f"Give {name} as true or false")
            return default
        if not isinstance(value, bool):
            raise self.refusal(name, f"it must be true or false, not {kind(value)}", "Correct it")
        return value

    def text(self, name: str, default: str | None = None) -> str | None:
        value = self._get(name)
        if value is _ABSENT:
            return default
        if not isinstance(value, str):
            raise self.refusal(name, f"it must be a text, not {kind(value)}", "Correct it")
        return value

    def texts(self, name: str) -> tuple[str, ...] | None:
        value = self._get(name)
        if value is _ABSENT:
            return None
        items = self._list(name, value)
        if not all(isinstance(item, str) for item in items):
            raise self.refusal(name, "it must be a list of texts", "Correct it")
        return tuple(items)

    def section(self, name: str) -> "Fields | None":
        value = self._get(name)
        if value is _ABSENT:
            return None
        if not isinstance(value, dict):
            raise self.refusal(name, f"it must be an object, not {kind(value)}", "Correct it")
        return Fields(value, f"{self._path}{name}.")

    def must_be(self, name: str, expected: bool | int | str, reason: str) -> None:
        """Refuses any other value than the one whose weights and cache are known; not given is the expected one."""
        value = self._get(name)
        if value is not _ABSENT and (value != expected or isinstance(value, bool) is not isinstance(expected, bool)):
            raise self.refusal(
                name, f"{kind(value)} is not understood here: {reason}", "Enter the model's figures by hand"
            )

    def ignore(self, *names: str) -> None:
        """Fields whose meaning was settled by another one."""
        self._read.update(names)

    def refuse_unread(self, also: Collection[str] = (), repeated_in: "Fields | None" = None) -> None:
        """Refuses the first field that is set, was not read, and is not known to be harmless.

        Some files repeat the language model's fields outside it: equal to `repeated_in` they say nothing new.
        """
        inner = {} if repeated_in is None else repeated_in._values
        for name, value in self._values.items():
            if name in inner and inner[name] == value:
                continue
            if name in self._read or name in HARMLESS or name in also or _HARMLESS_NAMES.fullmatch(name):
                continue
            if value is None or value is False or value in ("", [], {}) or (value == 0 and not isinstance(value, bool)):
                continue
            raise self.refusal(
                name,
                f"it is set to {kind(value)} and not understood for this architecture, so it may change the memory",
                "Leave it out when it changes neither weights nor cache, or enter the figures by hand",
            )

    def _get(self, name: str) -> Any:
        self._read.add(name)
        value = self._values.get(name)
        return _ABSENT if value is None else value

    def _whole(self, name: str, value: object, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refusal(name, f"it must be a whole number, not {kind(value)}", "Correct it")
        if not least <= value <= most:
            raise self.refusal(name, f"it must be {least:,} to {most:,}, not {shown(value)}", "Correct it")
        return value

    def _list(self, name: str, value: object) -> list[Any]:
        if not isinstance(value, list):
            raise self.refusal(name, f"it must be a list, not {kind(value)}", "Correct it")
        if len(value) > LONGEST_LIST:
            raise self.refusal(name, f"it has more than {LONGEST_LIST:,} entries", "Correct it")
        return value

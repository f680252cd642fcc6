"""Builds the layers for the template `text_transformer`.

Normalization comes before attention and dense layers: Xiong et al. 2020, On Layer Normalization in the
Transformer Architecture.
"""

from typing import Any

import keras

from jobs.spec.data.features import MISSING
from jobs.spec.templates.text_transformer import TextTransformerArgs
from workers.engine.models.templates.site import Site
from workers.engine.models.templates.tokens import mean_of_words, token_ids


def text_transformer(site: Site, args: TextTransformerArgs, others: Any) -> Any:
    """Return words → `blocks` × (attention, two dense layers) → norm → mean, beside the other columns.

    Args:
        site: the model's site; all token columns are read as one text.
        args: the template's arguments.
        others: the other columns, (rows, numbers); None if there are none.
    """
    texts = [token_ids(site.inputs, block) for block in site.profile.tokens]
    ids = keras.ops.concatenate(texts, axis=1) if len(texts) > 1 else texts[0]
    x = _words(site, args, texts, ids)
    # Padding is no word to attend to, (rows, 1, length).
    is_word = keras.ops.expand_dims(keras.ops.not_equal(ids, MISSING), 1)
    for number in range(1, args.blocks + 1):
        x = _block(site, args, number, x, is_word)
    x = mean_of_words(keras.layers.LayerNormalization(**site.named("norm"))(x), ids)
    if others is not None:
        x = keras.layers.Concatenate(**site.named("joined"))([x, others])
    return site.dropout("dropout")(x) if args.dropout else x


def _words(site: Site, args: TextTransformerArgs, texts: list[Any], ids: Any) -> Any:
    """Return each word's vector plus its position's vector, (rows, length, dim)."""
    layer = keras.layers.Embedding
    vectors = [
        layer(block.size, args.dim, **site.named(f"text_{number}"))(text)
        for number, (block, text) in enumerate(zip(site.profile.tokens, texts, strict=True), start=1)
    ]
    x = keras.layers.Concatenate(axis=1, **site.named("texts"))(vectors) if len(vectors) > 1 else vectors[0]
    # 0, 1, 2 … in every row; a layer of Keras takes no constant.
    positions = keras.ops.cumsum(keras.ops.ones_like(ids), axis=1) - 1
    where = layer(ids.shape[1], args.dim, **site.named("position"))(positions)
    return keras.layers.Add(**site.named("words"))([x, where])


def _block(site: Site, args: TextTransformerArgs, number: int, x: Any, is_word: Any) -> Any:
    """Return x + attention(norm(x)), then the same with two dense layers, (rows, length, dim)."""
    layers = keras.layers
    y = layers.LayerNormalization(**site.named(f"attention_norm_{number}"))(x)
    attention = layers.MultiHeadAttention(args.heads, args.head_width, **site.named(f"attention_{number}"))
    # With the scores, Keras computes the attention step by step: JAX's own function refuses float16 on CPUs.
    y, _ = attention(y, y, attention_mask=is_word, return_attention_scores=True)
    if args.dropout:
        y = site.dropout(f"attention_dropout_{number}")(y)
    x = layers.Add(**site.named(f"attention_add_{number}"))([x, y])
    y = layers.LayerNormalization(**site.named(f"dense_norm_{number}"))(x)
    y = layers.Dense(args.expansion * args.dim, **site.named(f"expand_{number}"))(y)
    y = layers.Activation(args.activation, **site.named(f"activation_{number}"))(y)
    y = layers.Dense(args.dim, **site.named(f"contract_{number}"))(y)
    if args.dropout:
        y = site.dropout(f"dense_dropout_{number}")(y)
    return layers.Add(**site.named(f"dense_add_{number}"))([x, y])

"""Fitted models in other libraries' forms, and theirs in ours. Nothing is fitted again.

``model.to_sklearn()``, ``model.to_onnx(path)``, ``network.to_torch()``, ``vectors.to_gensim()``,
``vectors.to_faiss()`` and ``recommender.to_faiss()`` lead out; the functions here lead in.
"""

from twofold.interchange.arrays import from_gensim_lda, from_implicit, from_surprise

__all__ = ["from_gensim_lda", "from_implicit", "from_surprise"]

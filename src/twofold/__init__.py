"""twofold: two factors, two half-steps, one loop.

Every public name is loaded on first use, so that ``import twofold`` is quick.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Estimators, which a model file may name, come first.
_MODELS = {
    "PCA": "twofold.linear.pca",
    "PPCA": "twofold.linear.ppca",
    "BayesianPCA": "twofold.linear.bayesian_pca",
    "FactorAnalysis": "twofold.linear.factor_analysis",
    "MixtureOfPPCA": "twofold.linear.mixture_of_ppca",
    "PPCAClassifier": "twofold.linear.ppca_classifier",
    "LinearAutoencoder": "twofold.linear.linear_autoencoder",
    "FisherLDA": "twofold.linear.fisher_lda",
    "KMeans": "twofold.clusters.kmeans.kmeans",
    "KMedoids": "twofold.clusters.kmedoids",
    "GaussianMixture": "twofold.clusters.mixtures.gaussian_mixture",
    "NearestRows": "twofold.clusters.nearest_rows",
    "VectorQuantizer": "twofold.clusters.vector_quantizer",
    "Mixture": "twofold.clusters.mixtures.mixture",
    "MeanImpute": "twofold.completion.mean_impute",
    "ForestImpute": "twofold.completion.forest_impute",
    "ColumnImpute": "twofold.completion.column_impute",
    "Biases": "twofold.completion.biases",
    "SVDImpute": "twofold.completion.svd_impute",
    "ALS": "twofold.completion.als",
    "GradientFactorization": "twofold.completion.gradient_factorization",
    "SVDPlusPlus": "twofold.completion.svd_plus_plus",
    "Neighborhood": "twofold.completion.neighborhood",
    "SVP": "twofold.completion.svp",
    "SVT": "twofold.completion.svt",
    "SoftImpute": "twofold.completion.soft_impute",
    "ImplicitALS": "twofold.completion.implicit_als",
    "EASE": "twofold.completion.ease",
    "Popularity": "twofold.completion.popularity",
    "Recommender": "twofold.completion.recommender.recommender",
    "BagOfWords": "twofold.text.bag_of_words",
    "LSA": "twofold.topics.lsa",
    "PLSA": "twofold.topics.plsa",
    "LatentDirichletAllocation": "twofold.topics.lda.lda",
    "NMF": "twofold.topics.nmf.nmf",
    "Vocabulary": "twofold.text.vocabulary",
    "Cooccurrence": "twofold.words.cooccurrence.cooccurrence",
    "SkipGram": "twofold.words.skip_gram.skip_gram",
    "GloVe": "twofold.words.glove.glove",
    "PMIEmbedding": "twofold.words.pmi",
    "WordVectors": "twofold.words.word_vectors.word_vectors",
    "Alignment": "twofold.words.alignment",
    "Factorization": "twofold.factors.factorization",
    "PCABasis": "twofold.signals.pca_basis",
    "KSVD": "twofold.signals.ksvd",
    "OnlineDictionary": "twofold.signals.online_dictionary",
    "SparseCoder": "twofold.signals.dictionary",
    "CompressiveSensing": "twofold.signals.compressive_sensing",
    "Autoencoder": "twofold.deep.autoencoder",
    "MLPClassifier": "twofold.deep.mlp",
    "MLPRegressor": "twofold.deep.mlp",
    "CNNClassifier": "twofold.deep.cnn",
    "NormalizingFlow": "twofold.deep.normalizing_flow",
    "PixelCNN": "twofold.deep.pixelcnn",
    "VAE": "twofold.deep.vae",
    "DLGM": "twofold.deep.dlgm",
    "GAN": "twofold.deep.gan",
    "VAEGAN": "twofold.deep.gan",
}
_OTHERS = {
    "PartitionedRatings": "twofold.completion.partitioned.ratings",
    "load": "twofold.core.files.model_file",
    "select": "twofold.model_selection",
    "config": "twofold.core.config",
    "EarlyStopping": "twofold.core.callbacks",
    "Checkpoint": "twofold.core.callbacks",
    "InputError": "twofold.core.checks",
    "ModelFileError": "twofold.core.checks",
}
_CALLED_HERE = {  # what other libraries call it
    "TruncatedSVD": "LSA for texts, linalg.truncated_svd or PCA for tables",
    "Word2Vec": "SkipGram",
    "FastText": "SkipGram",
    "KeyedVectors": "WordVectors",
    "LdaModel": "LatentDirichletAllocation",
    "LDA": "LatentDirichletAllocation",
    "CountVectorizer": "BagOfWords",
    "TfidfVectorizer": "BagOfWords with LSA",
    "MiniBatchKMeans": "KMeans, which has partial_fit and reads files",
    "IncrementalPCA": "PCA, which has partial_fit and reads files",
    "AlternatingLeastSquares": "ImplicitALS",
    "SVD": "linalg.truncated_svd, or ALS for ratings",
    "SVDpp": "SVDPlusPlus",
    "KNNBasic": "Neighborhood",
    "KNNBaseline": "Neighborhood",
    "BaselineOnly": "Biases",
    "SLIM": "EASE",
    "DictionaryLearning": "KSVD",
    "MiniBatchDictionaryLearning": "OnlineDictionary",
    "SparsePCA": "Factorization with L1",
    "LinearDiscriminantAnalysis": "FisherLDA",
    "KNNImputer": "ColumnImpute or ForestImpute",
    "IterativeImputer": "ForestImpute",
    "SimpleImputer": "MeanImpute",
    "GMM": "GaussianMixture",
    "BayesianGaussianMixture": "GaussianMixture with select",
    "OrthogonalMatchingPursuit": "signals.orthogonal_matching_pursuit",
    "ProbabilisticPCA": "PPCA",
    "AutoEncoder": "Autoencoder",
}
_FAMILIES = ("linear", "completion", "topics", "words", "clusters", "signals", "deep", "factors")
_MODULES = {
    name: f"twofold.{name}"
    for name in ("analyses", "datasets", "interchange", "linalg", "metrics", "plots", "text", *_FAMILIES)
}
_HOMES = {**_MODELS, **_OTHERS}

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _CALLED_HERE:  # an AttributeError would be replaced by Python's own words
        raise ImportError(f"{name} is called {_CALLED_HERE[name]} here.", name=f"twofold.{name}")
    else:
        raise AttributeError(f"module 'twofold' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
